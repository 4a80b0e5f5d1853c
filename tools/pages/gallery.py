"""The gallery: every world, played by the best policy that comes with it, in the replay player."""

from __future__ import annotations

from contextlib import closing

from shoal.registry import OURS, find_world
from shoal.report.page import render_page
from shoal.report.replay import record_replay, replay_section
from shoal.seeding import Seed, Stream
from shoal.training.lab import lab_of
from shoal.training.opening import open_policy
from shoal.world import World

LANES, STEPS = 2, 400
PLAYERS = {"cage2": "bundled"}
"""Who plays, where it is not the world's default policy."""
WIDE = "---\nhide: [navigation, toc]\n---"
THEME = """<script>
for (const frame of document.querySelectorAll("iframe.replay")) {
  const theme = () => (document.body.dataset.mdColorScheme === "slate" ? "dark" : "light");
  const show = () => { frame.src = `${frame.dataset.src}?embed&theme=${theme()}`; };
  new MutationObserver(show).observe(document.body, { attributes: true, attributeFilter: ["data-md-color-scheme"] });
  show();
}
</script>"""
"""The players follow the light and dark of the page around them."""


def pages() -> dict[str, str]:
    """The gallery, and a page with a player for every world."""
    parts = [WIDE, "# Gallery", "Recorded when this site was built; `shoal play` makes such pages of your runs too."]
    players = {}
    for name in OURS:
        world = find_world(name)
        if world is None:
            raise LookupError(f"{name} is listed, but not found.")
        policy = PLAYERS.get(name, lab_of(world).default_policy)
        players[f"gallery/{name}.html"] = _player(world, policy)
        parts += [
            f"## {name}",
            f"{world.summary[0].upper()}{world.summary[1:]}: `shoal play {name} --policy {policy}`.",
            f'<iframe class="replay" data-src="{name}.html" title="{name}" loading="lazy"></iframe>',
        ]
    return {"gallery.md": "\n\n".join([*parts, THEME]), **players}


def _player(world: World, policy: str) -> str:
    player = open_policy(world, LANES, policy, autoreset_mode="disabled")
    with closing(player):
        replay = record_replay(
            player.batch, player.act_in(player.batch), Seed(0, Stream.EVALUATION), player.title, STEPS
        )
    return render_page(replay["title"], "", "", [replay_section([replay], "")])
