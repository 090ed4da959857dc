"""Scaffolds, proves and calibrates stages: what a stage ships is graded as a submission would be."""
