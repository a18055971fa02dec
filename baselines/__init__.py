"""The methods NGT is compared with, one file each."""
