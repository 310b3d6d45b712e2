"""What documents hold besides text: typed fields, names and their spellings, links between documents."""
