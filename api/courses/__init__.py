"""Courses: who is in one and may do what, its stages and their times, what its members reached, and what it is worth."""
