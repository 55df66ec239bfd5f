"""What the applications share: how one is declared and checked, its settings, its database, PDFs, embeddings."""
