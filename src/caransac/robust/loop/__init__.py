"""The loops: CA-RANSAC and its classical counterpart LM-LO, and the steps that they are made of."""
