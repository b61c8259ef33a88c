"""Text to tokens: what `meshwork tokenize` runs, over the library `tokenizers`.

Reads JSON lines (a document each, in a field) and texts (a document each file), writes a Megatron pair: OUT.bin with the
ids, 16 bits each where the vocabulary allows, and OUT.idx with where documents begin. OUT.json tells by which tokenizer.
With --prompt and --answer OUT.mask.bin has a byte for each token: 1 where it is of an answer, and so counts as a target.
Batches are read, encoded by all cores and written; two are in memory. Files appear under their names at the end.
"""
import argparse
import array
import concurrent.futures
import hashlib
import json
import os
import pathlib
import struct
import sys
import time

PIECE_BYTES, BATCH_BYTES, BATCH_PIECES = 1 << 20, 4 << 20, 4096
LONGEST_LINE = 256 << 20
ENDINGS = (".json", ".idx", ".mask.bin", ".bin")  # the tokens last: whoever sees them has the rest
USAGE, DATA, NO_INPUT, UNAVAILABLE, CANNOT_CREATE, INPUT_OUTPUT = 64, 65, 66, 69, 73, 74


class Failure(Exception):
    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


def quote(name):
    return json.dumps(str(name), ensure_ascii=False)


def library():
    try:
        import tokenizers
    except ImportError:
        raise Failure(UNAVAILABLE, f"{sys.executable} has no module 'tokenizers'. These two lines give one that has it:\n"
                      "  python3 -m venv ~/meshwork-python && ~/meshwork-python/bin/pip install tokenizers\n"
                      "  export MESHWORK_PYTHON=~/meshwork-python/bin/python") from None
    return tokenizers


def opened(path):
    if os.path.exists(path) and not os.path.isfile(path):  # opening a pipe would wait
        raise Failure(NO_INPUT, f"{quote(path)}: is no regular file")
    try:
        return open(path, "rb")
    except OSError as error:
        raise Failure(NO_INPUT, f"{quote(path)}: cannot open: {error.strerror}") from None


def text_of(data, path, where):
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise Failure(DATA, f"{quote(path)}: {where} is no UTF-8: byte {error.start} of it is {data[error.start]:#04x}") from None


class Input:
    """Pieces of documents: (text, whether its document ends with it, whether its tokens count as targets). A document
    of JSON has a piece for each of `fields`, of which the last counts."""

    def __init__(self, path, fields):
        self.path, self.fields, self.read = path, fields, 0
        if not path.endswith((".jsonl", ".txt")):
            raise Failure(USAGE, f"{quote(path)}: expected a name that ends in .jsonl or .txt")
        if len(fields) > 1 and not path.endswith(".jsonl"):
            raise Failure(USAGE, f"{quote(path)}: --prompt and --answer are fields of .jsonl, found a plain text")

    def pieces(self):
        with opened(self.path) as file:
            yield from (self._lines(file) if self.path.endswith(".jsonl") else self._text(file))

    def _lines(self, file):
        for number, line in enumerate(iter(lambda: file.readline(LONGEST_LINE + 1), b""), 1):
            if len(line) > LONGEST_LINE:
                raise Failure(DATA, f"{quote(self.path)}:{number}: has more than {LONGEST_LINE} bytes")
            self.read += len(line)
            if line.strip():
                *prompts, answer = self._document(text_of(line, self.path, f"line {number}"), number)
                yield from ((prompt, False, False) for prompt in prompts)
                yield answer, True, True

    def _document(self, line, number):
        where = f"{quote(self.path)}:{number}"
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise Failure(DATA, f"{where}: is no JSON: {error}") from None
        for field in self.fields:
            if not isinstance(record, dict) or not isinstance(record.get(field), str):
                keys = ", ".join(map(quote, list(record)[:8])) if isinstance(record, dict) else type(record).__name__
                raise Failure(DATA, f"{where}: has no text in {quote(field)}, found {keys}; {self._advice(record)}")
        return [record[field] for field in self.fields]

    def _advice(self, record):
        if isinstance(record, dict) and isinstance(record.get("messages", record.get("conversations")), list):
            return "chat templates are not applied: write each prompt and each answer as a text, and give --prompt and --answer"
        return "give --field" if len(self.fields) == 1 else "give --prompt and --answer"

    def _text(self, file):
        """Cut at ends of lines, so that a text may be of any length."""
        piece = self._piece(file)
        while piece:
            end = self.read
            following = self._piece(file)
            yield text_of(piece, self.path, f"what ends at byte {end}"), not following, True
            piece = following

    def _piece(self, file):
        piece = file.read(PIECE_BYTES)
        if len(piece) == PIECE_BYTES:
            piece += file.readline(LONGEST_LINE)
        self.read += len(piece)
        return piece


class Pair:
    """OUT.bin, OUT.idx and where it is wanted OUT.mask.bin, under other names until `finish`. Lists that grow with the text
    are files, too."""

    def __init__(self, out, vocabulary, has_mask):
        self.code, self.kind = ("H", 8) if vocabulary <= 1 << 16 else ("i", 4)  # Megatron's numbers of types
        self.paths = {ending: out.with_suffix(ending) for ending in ENDINGS}
        for path in self.paths.values():
            if path.is_dir():
                raise Failure(CANNOT_CREATE, f"{quote(path)}: is a folder")
        self.parts = {ending: out.with_name(f".{out.stem}{ending}.partial-{os.getpid()}")
                      for ending in (*self.paths, ".lengths", ".documents")}
        self.tokens = self.targets = self.sequences = self.documents = 0
        self.ids = self.lengths = self.starts = self.mask = None
        self.has_mask = has_mask

    def open(self):
        self.ids, self.lengths, self.starts = (open(self.parts[ending], "x+b") for ending in (".bin", ".lengths", ".documents"))
        if self.has_mask:
            self.mask = open(self.parts[".mask.bin"], "xb")
        self._begin_document()

    def _begin_document(self):
        """Or ends the last one: so many sequences are before it."""
        self.starts.write(struct.pack("<q", self.sequences))

    def add(self, ids, ends, counts):
        array.array(self.code, ids).tofile(self.ids)
        if self.mask:
            self.mask.write((b"\1" if counts else b"\0") * len(ids))
        self.lengths.write(struct.pack("<i", len(ids)))
        self.tokens += len(ids)
        self.targets += len(ids) if counts else 0
        self.sequences += 1
        if ends:
            self.documents += 1
            self._begin_document()

    def finish(self, told):
        self._write_index()
        self.parts[".json"].write_text(json.dumps({**told, "tokens": self.tokens, "documents": self.documents}, indent=1) + "\n")
        self.ids.close()
        if self.mask:
            self.mask.close()
        for ending in ENDINGS:
            if ending == ".mask.bin" and not self.mask:
                continue
            with open(self.parts[ending], "rb") as file:
                os.fsync(file.fileno())
            self.parts[ending].replace(self.paths[ending])
        if not self.mask:  # It is of other tokens.
            self.paths[".mask.bin"].unlink(missing_ok=True)

    def _write_index(self):
        width, offset = array.array(self.code).itemsize, 0
        with open(self.parts[".idx"], "xb") as index:
            index.write(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, self.kind, self.sequences, self.documents + 1))
            for chunk in self._chunks(self.lengths):
                index.write(chunk)
            for chunk in self._chunks(self.lengths):
                offsets = array.array("q")
                for (length,) in struct.iter_unpack("<i", chunk):
                    offsets.append(offset)
                    offset += width * length
                offsets.tofile(index)
            for chunk in self._chunks(self.starts):
                index.write(chunk)

    @staticmethod
    def _chunks(file):
        file.seek(0)
        yield from iter(lambda: file.read(1 << 20), b"")

    def drop(self):
        for file in (self.ids, self.lengths, self.starts, self.mask):
            if file:
                file.close()
        for path in self.parts.values():
            path.unlink(missing_ok=True)


class Bar:
    """On a terminal."""

    def __init__(self, total):
        self.total, self.began, self.shown = total, time.monotonic(), 0.0

    def show(self, read):
        now = time.monotonic()
        if not sys.stderr.isatty() or now - self.shown < 0.2:
            return
        self.shown, rate = now, read / max(now - self.began, 1e-3)
        part = read / max(self.total, 1)
        sys.stderr.write(f"\r[{'#' * int(20 * part):.<20}] {100 * part:.0f} %  {rate / 1e6:.1f} MB/s  "
                         f"eta {(self.total - read) / max(rate, 1):.0f} s\x1b[K")
        sys.stderr.flush()

    def end(self):
        if sys.stderr.isatty():
            sys.stderr.write("\r\x1b[K")


def batches(inputs, bar):
    batch, size = [], 0
    for one in inputs:
        for piece in one.pieces():
            batch.append(piece)
            size += len(piece[0])
            if size >= BATCH_BYTES or len(batch) >= BATCH_PIECES:
                yield batch
                batch, size = [], 0
                bar.show(sum(other.read for other in inputs))
    if batch:
        yield batch


def encode(tokenizer, inputs, pair, end, bar):
    """While the library encodes a batch, the one before is written and the next is read."""
    # The fast form tells no places in the text, which nobody asks for.
    all_of = getattr(tokenizer, "encode_batch_fast", None) or tokenizer.encode_batch
    behind = [] if end is None else [end]

    def write(batch, found):
        for one, (_, ends, counts) in zip(found.result(), batch):
            pair.add(one.ids + behind if ends else one.ids, ends, counts)

    with concurrent.futures.ThreadPoolExecutor(1) as worker:
        before = None
        for batch in batches(inputs, bar):
            found = worker.submit(all_of, [text for text, _, _ in batch], add_special_tokens=False)
            if before:
                write(*before)
            before = batch, found
        if before:
            write(*before)


def read_tokenizer(path):
    with opened(path) as file:
        data = file.read()
    try:
        return library().Tokenizer.from_buffer(data), hashlib.sha256(data).hexdigest()
    except Failure:
        raise
    except Exception as error:  # the library has no kinds of errors
        raise Failure(DATA, f"{quote(path)}: is no tokenizer.json: {error}") from None


def check_names(out, inputs, tokenizer):
    if out.suffix != ".bin":
        raise Failure(USAGE, f"-o {quote(out)}: expected a name that ends in .bin")
    if not inputs:
        raise Failure(USAGE, "no file of text is given")
    for path in (tokenizer, *inputs):
        for ending in ENDINGS:
            if out.with_suffix(ending).exists() and os.path.exists(path) and os.path.samefile(path, out.with_suffix(ending)):
                raise Failure(USAGE, f"{quote(path)}: would be overwritten by -o {quote(out)}; give another name")


def run(arguments):
    out = pathlib.Path(arguments.output)
    check_names(out, arguments.text, arguments.tokenizer)
    if bool(arguments.prompt) != bool(arguments.answer):
        raise Failure(USAGE, "--prompt and --answer need each other")
    fields = [arguments.prompt, arguments.answer] if arguments.prompt else [arguments.field]
    inputs = [Input(path, fields) for path in arguments.text]
    tokenizer, digest = read_tokenizer(arguments.tokenizer)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    end = None
    if arguments.end_of_document is not None:
        end = tokenizer.token_to_id(arguments.end_of_document)
        if end is None:
            raise Failure(USAGE, f"--end-of-document {quote(arguments.end_of_document)}: is no token of the tokenizer")
    vocabulary = max(tokenizer.get_vocab().values(), default=-1) + 1
    for path in arguments.text:
        opened(path).close()
    bar = Bar(sum(os.path.getsize(path) for path in arguments.text))
    pair = Pair(out, vocabulary, has_mask=len(fields) > 1)
    try:
        pair.open()
        encode(tokenizer, inputs, pair, end, bar)
        if pair.tokens == 0:
            raise Failure(DATA, "the texts have no token")
        pair.finish({"tokenizer_sha256": digest, "vocabulary": vocabulary, "end_of_document": end,
                     "files": [os.path.basename(path) for path in arguments.text]})
    except OSError as error:
        raise Failure(INPUT_OUTPUT if pair.starts else CANNOT_CREATE, f"{quote(out)}: {error.strerror}") from None
    finally:
        bar.end()
        pair.drop()
    print(f"{out}: {pair.tokens} tokens of {pair.documents} documents, "
          f"{'16' if pair.code == 'H' else '32'} bits each, vocabulary {vocabulary}"
          + (f"; {pair.targets} tokens count as targets" if pair.has_mask else ""))


def main():
    parser = argparse.ArgumentParser(prog="meshwork tokenize", description=__doc__.splitlines()[0])
    parser.add_argument("tokenizer")
    parser.add_argument("text", nargs="+")
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("--field", default="text")
    parser.add_argument("--end-of-document")
    parser.add_argument("--prompt")
    parser.add_argument("--answer")
    try:
        run(parser.parse_args())
    except Failure as failure:
        print(f"meshwork tokenize: error: {failure}", file=sys.stderr)
        return failure.code
    except KeyboardInterrupt:
        print("meshwork tokenize: stopped; nothing is written", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
