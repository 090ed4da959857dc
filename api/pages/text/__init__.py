"""Text turned into HTML: lessons, formulas, sources, and where messages point into them. It knows no request."""
