"""The methods that NGT is compared with, one file each."""
