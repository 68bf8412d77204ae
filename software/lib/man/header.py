"""What dibber.h says, read from its comments.

A function's comment has the form of the Linux kernel (Documentation/doc-guide/kernel-doc.rst): name
and purpose, `@parameter:` lines, then paragraphs. One paragraph begins with "Errors:". It lists the
errors by name, without DIB_ERR_. An error may have a particular meaning in brackets. "those of
NAME()" stands for the list of another function.
"""

# SPDX-License-Identifier: BSD-2-Clause

import dataclasses
import re


@dataclasses.dataclass
class Function:
    """A call, as its comment and prototype describe it.

    Attributes
    ----------
    parameters : {name: text} of the parameters that are explained
    text       : paragraphs, without those about errors and the returned value
    returns    : the paragraph about the returned value, or ""
    errors     : {name: particular meaning, or ""}
    """

    name: str
    purpose: str
    parameters: dict
    text: list
    returns: str
    errors: dict
    prototype: str
    section: str


class Header:
    """The whole header.

    Attributes
    ----------
    purpose    : the first line of the first comment
    overview   : [(heading or "", [paragraph])] of the rest of that comment
    errors     : {name without DIB_ERR_: meaning}
    structures : {name: definition}
    functions  : {name: Function}, in the header's order
    name       : as programs include it
    """

    def __init__(self, path, errors=None):
        """errors : of the header that has them, for one without"""
        source = path.read_text()
        self.name = f"dibber/{path.name}"
        self.errors = errors or dict(re.findall(r"DIB_ERR_(\w+)\s*= -\d+,\s*/\* (.*?) \*/", source))
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
        """Purpose and overview. A heading is a line above lines that begin with a tab; a paragraph
        whose first line begins with a tab belongs to the heading before."""
        overview = []
        for part in "\n".join(lines[1:]).split("\n\n"):
            rows = part.strip("\n").split("\n")
            if rows[0].startswith("\t"):
                overview[-1][1].append(" ".join(part.split()))
                continue
            heading = ""
            if len(rows) > 1 and rows[1].startswith("\t"):
                heading, rows = rows[0], rows[1:]
            overview.append((heading, [" ".join(" ".join(rows).split())]))
        return lines[0].partition(": ")[2].rstrip("."), overview

    def _function(self, lines, prototype, section):
        at = next(n for n, line in enumerate([*lines, ""]) if not line.strip() or line[0] == "@")
        title = " ".join(line.strip() for line in lines[:at])
        name, purpose = re.fullmatch(r"(\w+)\(\) - (.*?)\.?", title).groups()
        parameters = {}
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
