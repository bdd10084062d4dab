"""The assessment of an answer: degeneracy, rivals, evidence about cameras, uncertainty and confidence."""
