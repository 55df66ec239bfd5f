"""Dropping: a file on a page's drop box, as a person does it."""

DROP = """async ([name, bytes]) => {
  const transfer = new DataTransfer();
  transfer.items.add(new File([new Uint8Array(bytes)], name));
  const place = document.querySelector("form.drop");
  const with_ = { bubbles: true, cancelable: true, dataTransfer: transfer };
  for (const kind of ["dragenter", "dragover", "drop"]) place.dispatchEvent(new DragEvent(kind, with_));
}"""
