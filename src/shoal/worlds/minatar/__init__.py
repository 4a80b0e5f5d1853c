"""MinAtar: five Atari games in small (Young & Tian 2019), step for step equal to the `minatar` package."""
