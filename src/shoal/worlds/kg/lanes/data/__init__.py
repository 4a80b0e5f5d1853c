"""Knowledge graphs: from names in files to tables of numbers."""
