"""What is wrong with the files of a workspace, and the mend; what a workspace no longer needs."""
