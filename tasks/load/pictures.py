"""Pictures: recognise the text in them (the extra `ocr`), and keep those that a model describes.

RapidOCR's package holds its models, for Chinese and English, so nothing is downloaded. What was
recognised is kept by the content of the picture: an unchanged file costs nothing again.
"""

import hashlib
import io
import json
import re
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from typing import Any, Protocol
from zipfile import BadZipFile

from PIL import Image, ImageOps, ImageSequence

from storage.records import Recognized
from tasks.load.encodings import Unreadable
from tasks.load.layout import Page, Reading, lay_out, places, reading_lines
from tasks.load.text import PageText, one_line, pretty_stem

# What a picture's file may be called.
PICTURES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".webp")
LONGEST_SIDE = 2000  # pixels: RapidOCR shrinks larger pictures to this
NOT_RECOGNIZED = "pip install 'trellis-rag[ocr]' to have its text recognised"
_FORMATS = ("PNG", "JPEG", "TIFF", "WEBP", "GIF", "BMP")
_LONGEST_SHOWN = 1024  # pixels of a picture that a model is shown
_LEAST_SHOWN = 48  # pixels: smaller ones are bullets and icons
MARKER = re.compile(r"\s{0,9}(\[\[picture [0-9a-f]{16}\]\])\s{0,9}")
_READER_VERSION = "rapidocr PP-OCRv6"  # of the models
_WORKING = threading.Lock()  # RapidOCR takes its options by changing itself


class Kept(Protocol):
    """Texts by key that outlive a run."""

    def get(self, key: str) -> str | None: ...

    def put(self, key: str, answer: str) -> None: ...


@cache
def _engine() -> Any:
    """Return RapidOCR with the models in its package."""
    from rapidocr import RapidOCR  # an extra; the import takes seconds

    return RapidOCR(params={"Global.log_level": "critical"})


@dataclass
class PictureReader:
    """Reads pictures; `figures` gets those that a model shall describe, as JPEG by their marker."""

    kept: Kept | None = None
    describes: bool = False
    figures: dict[str, bytes] = field(default_factory=dict)

    @property
    def recognizes(self) -> bool:
        """Whether text in pictures can be recognised."""
        return find_spec("rapidocr") is not None

    @property
    def works(self) -> bool:
        """Whether pictures say anything here."""
        return self.recognizes or self.describes

    def read(self, picture: Image.Image) -> list[Reading]:
        """Return what is recognised in an RGB picture, in pixels from its lower left corner.

        Empty where the extra is missing, and where there is no text.
        """
        if not self.recognizes:
            return []
        size = f"{picture.width}x{picture.height}"
        digest = hashlib.sha256(picture.tobytes()).hexdigest()
        key = f"{_READER_VERSION} {size} {digest}"
        if self.kept is not None and (known := self.kept.get(key)):
            return [Reading(*row) for row in json.loads(known)]
        with _WORKING:
            found = _engine()(picture)
        readings = [
            _reading(box, text, float(score), picture.height)
            for box, text, score in zip(
                () if found.boxes is None else found.boxes.tolist(),
                found.txts or (),
                found.scores or (),
                strict=True,
            )
            if text.strip()
        ]
        if self.kept is not None:
            self.kept.put(key, json.dumps(readings, ensure_ascii=False))
        return readings

    def marker(self, picture: Image.Image) -> str:
        """Keep a picture for a model to describe; return what stands in its place until then.

        Empty where no model does that, and for icons.
        """
        if not self.describes or min(picture.size) < _LEAST_SHOWN:
            return ""
        shown, made = picture.copy(), io.BytesIO()
        shown.thumbnail((_LONGEST_SHOWN, _LONGEST_SHOWN))
        shown.save(made, "JPEG", quality=85)
        marker = f"[[picture {hashlib.sha256(made.getvalue()).hexdigest()[:16]}]]"
        self.figures[marker] = made.getvalue()
        return marker


# The reader of this run: the reader of a file gets only its bytes and its name.
READER: ContextVar[PictureReader] = ContextVar("picture_reader")


def picture_reader() -> PictureReader:
    """Return the reader of this run, or one that keeps nothing."""
    return READER.get(None) or PictureReader()


def _reading(box: list[list[float]], text: str, confidence: float, height: int) -> Reading:
    """Return a reading with the upright box around the corners that RapidOCR names.

    Of a tilted line the box is as high as the line, so that its neighbours do not reach into it.
    """
    (left, _), (right, _) = min(box), max(box)
    (_, a), (_, b), (_, c), (_, d) = box
    middle, half = (a + b + c + d) / 4, abs(c + d - a - b) / 4
    return Reading(text, left, height - middle - half, right, height - middle + half, confidence)


def frames_of(data: bytes) -> Iterator[Image.Image]:
    """Yield the pages of a TIFF file, or the one picture of another, upright, in RGB, on white.

    Raises `Unreadable`.
    """
    try:
        image = Image.open(io.BytesIO(data), formats=_FORMATS)
        frames = ImageSequence.Iterator(image) if image.format == "TIFF" else (image,)
        for frame in frames:
            yield _on_white(ImageOps.exif_transpose(frame))
    except Image.DecompressionBombError as error:
        raise Unreadable(f"too many pixels ({error}): make it smaller") from error
    except (OSError, SyntaxError, ValueError) as error:  # what Pillow raises for broken files
        raise Unreadable(f"broken picture ({error})") from error


def _on_white(image: Image.Image) -> Image.Image:
    if not image.has_transparency_data:
        return image.convert("RGB")
    paper = Image.new("RGBA", image.size, "white")
    return Image.alpha_composite(paper, image.convert("RGBA")).convert("RGB")


def read_picture(data: bytes, name: str) -> PageText:
    """Read a picture as a document, each frame of a TIFF file as a page.

    Raises `Unreadable` where nothing is recognised and no model describes it.
    """
    reader = picture_reader()
    pages = [picture_page(frame, reader) for frame in frames_of(data)]
    page = lay_out(pages)
    if page.text.strip():
        title = pretty_stem(name) if MARKER.match(page.text) else ""
        return page.model_copy(update={"title": title})
    if not reader.recognizes:
        raise Unreadable(f"a picture: {NOT_RECOGNIZED}")
    raise Unreadable("no text is recognised in it: set TRELLIS_LM_DESCRIBE to have it described")


def picture_page(picture: Image.Image, reader: PictureReader) -> Page:
    """Return what a picture says as a page: its text, then the place of its description."""
    readings, lines = reading_lines(reader.read(picture))
    return Page(lines, readings, picture.width, picture.height, reader.marker(picture))


# --- pictures within documents ---


@dataclass
class InnerPictures:
    """The pictures of a document, each read once; `unread` says which cannot be read, and why."""

    pages: list[tuple[Page, int | None]] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)

    def text_of(self, read: Callable[[], bytes], number: int | None = None) -> str:
        """Return the text of a picture on a page; empty where it has been read before.

        A picture that is linked, missing or broken is entered in `unread`.
        """
        reader = picture_reader()
        if not reader.works:
            return ""
        try:
            data = read()
            if (digest := hashlib.sha256(data).hexdigest()) in self.seen:
                return ""
            self.seen.add(digest)
            pages = [picture_page(frame, reader) for frame in frames_of(data)]
        except (Unreadable, OSError, LookupError, ValueError, BadZipFile) as error:
            self.unread.append(f"a picture in it cannot be read: {one_line(str(error))[:200]}")
            return ""
        self.pages += [(page, number) for page in pages]
        return lay_out(pages).text

    def recognized_in(self, text: str) -> tuple[Recognized, ...]:
        """Return where the readings of all pictures stand in the text of the document."""
        found, at = list[Recognized](), 0
        for page, number in self.pages:
            found += places(page, number, text, at, len(text))
            at = found[-1].end if found else 0
        return tuple(found)
