"""The HTTP service: submissions in, results out, and the pages people see."""
