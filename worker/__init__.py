"""The grading side: claims submissions, runs them in the sandbox and judges what came out."""
