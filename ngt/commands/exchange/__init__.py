"""Commands that exchange demonstrations with other projects."""
