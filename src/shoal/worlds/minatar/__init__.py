"""MinAtar: five Atari games in miniature (Young & Tian 2019), step for step equal to the `minatar` package."""
