"""Reports as one HTML file that works offline; needs the extra `report`."""
