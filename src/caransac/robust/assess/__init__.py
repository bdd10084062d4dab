"""The assessment of an answer: what else explains the matches, how uncertain it is, and how confident to be in it."""
