"""`judge report --by COLUMN`: means and differences of parts of the data."""
