"""The gallery: every world, played by the best policy that comes with it, in the replay player."""

from __future__ import annotations

from contextlib import closing

from shoal.report.page import render_page
from shoal.report.replay import record_replay, replay_section
from shoal.seeding import Seed, Stream
from shoal.training.lab import lab_of
from shoal.training.opening import open_policy
from shoal.world import World
from tools.pages.reference import worlds

LANES, STEPS = 2, 400
PLAYERS = {"cage2": "bundled"}
"""Who plays, where it is not the world's default policy."""
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
    """What is added to the gallery."""
    parts = []
    for world in worlds():
        parts += [
            f"## {world.name}",
            f"{world.summary[0].upper()}{world.summary[1:]}: `shoal play {world.name} --policy {_policy(world)}`.",
            f'<iframe class="replay" data-src="{world.name}.html" title="{world.name}" loading="lazy"></iframe>',
        ]
    return {"gallery.md": "\n\n".join([*parts, THEME])}


def players() -> dict[str, str]:
    """A page with a player for every world, by path."""
    return {f"gallery/{world.name}.html": _player(world) for world in worlds()}


def _policy(world: World) -> str:
    return PLAYERS.get(world.name, lab_of(world).default_policy)


def _player(world: World) -> str:
    player = open_policy(world, LANES, _policy(world), autoreset_mode="disabled")
    with closing(player):
        seed = Seed(0, Stream.EVALUATION)
        replay = record_replay(player.batch, player.act_in(player.batch), seed, player.title, STEPS)
    return render_page(replay["title"], "", "", [replay_section([replay], "")])
