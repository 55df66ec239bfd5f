"""Drop file: a script that drops a file on the upload box of a page, as a person does with the mouse."""

DROP = """async ([name, bytes]) => {
  const transfer = new DataTransfer();
  transfer.items.add(new File([new Uint8Array(bytes)], name));
  const form = document.querySelector("form.drop");
  const options = { bubbles: true, cancelable: true, dataTransfer: transfer };
  for (const kind of ["dragenter", "dragover", "drop"]) form.dispatchEvent(new DragEvent(kind, options));
}"""
