"""The tables' pages and pictures, from records."""
