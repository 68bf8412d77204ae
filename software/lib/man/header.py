"""What dibber.h says, read from its comments.

A function's comment is in the form of the Linux kernel's (Documentation/doc-guide/kernel-doc.rst):
name and purpose, `@parameter:` lines, then paragraphs, of which one begins with "Errors:" and lists
them by name without DIB_ERR_, each with its particular meaning in brackets where it has one; "those
of NAME()" stands for another function's list.
"""

# SPDX-License-Identifier: BSD-2-Clause

import dataclasses
import re


@dataclasses.dataclass
class Function:
    """A call. `parameters`: {name: text} of those explained; `text`: paragraphs without those on
    errors and the
    returned value; `returns`: the paragraph on that, or ""; `errors`: {name: particular meaning or
    ""}."""

    name: str
    purpose: str
    parameters: dict
    text: list
    returns: str
    errors: dict
    prototype: str
    section: str


class Header:
    """Attributes: `purpose` and `overview` ([(heading or "", text)]) of the first comment, `errors`
    ({name: meaning}),
    `structures` ({name: definition}), `functions` ({name: Function})."""

    def __init__(self, path):
        source = path.read_text()
        self.errors = dict(re.findall(r"DIB_ERR_(\w+)\s*= -\d+,\s*/\* (.*?) \*/", source))
        self.structures = {
            found[1]: found[0]
            for found in re.finditer(r"^struct (dib_\w+) \{\n.*?^\};", source, re.S | re.M)
        }
        self.functions = {}
        comments = list(re.finditer(r"^/\*\*\n(.*?)^ \*/\n(.*?;)?", source, re.S | re.M))
        self.purpose, self.overview = self._head(self._lines(comments[0][1]))
        for comment in comments[1:]:
            sections = re.findall(r"^/\* ([A-Z][\w' ]+) -+ \*/$", source[: comment.start()], re.M)
            function = self._function(
                self._lines(comment[1]), comment[2], sections[-1] if sections else "Errors"
            )
            self.functions[function.name] = function

    @staticmethod
    def _lines(comment):
        return [
            line[3:] if line.startswith(" * ") else line[2:]
            for line in comment.rstrip("\n").split("\n")
        ]

    @staticmethod
    def _paragraphs(lines):
        return [" ".join(part.split()) for part in "\n".join(lines).split("\n\n") if part.strip()]

    def _head(self, lines):
        overview, heading = [], ""
        for part in "\n".join(lines[1:]).split("\n\n"):
            rows = part.strip("\n").split("\n")
            if len(rows) > 1 and rows[1].startswith("\t"):
                heading, rows = rows[0], rows[1:]
            else:
                heading = ""
            overview.append((heading, " ".join(" ".join(rows).split())))
        return lines[0].partition(": ")[2].rstrip("."), overview

    def _function(self, lines, prototype, section):
        name, purpose = re.fullmatch(r"(\w+)\(\) - (.*?)\.?", lines[0]).groups()
        parameters, at = {}, 1
        while at < len(lines) and lines[at].strip():
            new = re.match(r"@(\w+): *(.*)", lines[at])
            if new:
                last = new[1]
                parameters[last] = new[2]
            else:
                parameters[last] += " " + lines[at].strip()
            at += 1
        text, returns, errors = [], "", None
        for paragraph in self._paragraphs(lines[at:]):
            if paragraph.startswith("Errors: "):
                errors = self._error_list(name, paragraph[8:])
            elif paragraph.startswith("Returns "):
                returns = paragraph
            else:
                text.append(paragraph)
        if errors is None:
            raise ValueError(f"{name}() does not say which errors it knows")
        return Function(name, purpose, parameters, text, returns, errors, prototype, section)

    def _error_list(self, name, text):
        same = re.fullmatch(r"those of (\w+)\(\)\.", text)
        if same:
            return dict(self.functions[same[1]].errors)
        if text == "none.":
            return {}
        errors = {
            error: meaning or ""
            for error, meaning in re.findall(r"([A-Z_]+)(?: \(([^)]*)\))?[,.]", text)
        }
        left = re.sub(r"[A-Z_]+(?: \([^)]*\))?[,.] ?", "", text)
        if left or set(errors) - set(self.errors):
            raise ValueError(
                f"{name}(): its errors cannot be read: {left or set(errors) - set(self.errors)}"
            )
        return errors
