"""What the pages draw: each module turns results into coordinates and words, and knows no request."""
