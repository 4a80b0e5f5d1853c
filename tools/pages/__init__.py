"""Pages of the site that are made from the code: settings, options, commands, Python, and replays of every world."""
