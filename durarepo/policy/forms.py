"""What a file's name says of its form: how values stand in it, and whether it holds logins.

Only a form that is certain is redacted; whatever is not named here is left out as a whole when
a credential stands in it. Pure; nothing is opened.
Source: spec/exclusion.md 5, the documentation of the programs named. Start at `form_of`.
"""

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from durarepo.policy.names import folded, text_of, undecorated
from durarepo.policy.tails import Tails


class Syntax(StrEnum):
    """How values stand in a file."""

    JSON = "json"  # with comments, trailing commas and bare words as well
    LINES = "lines"  # a name and a value a line: YAML, INI, properties, rc files
    TOML = "toml"
    XML = "xml"
    TEXT = "text"  # prose, logs, a JSON value a line: only values of known form
    OTHER = "other"  # nothing is certain


class Profile(StrEnum):
    """What is known of a file beyond its syntax."""

    NONE = "none"
    LOGIN = "login"  # a program's settings, logins among them: short values count
    STORE = "store"  # goes as a whole if a value is set
    DATA = "data"  # looks like configuration, is none: only values of known form


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """The form of one file."""

    syntax: Syntax
    profile: Profile = Profile.NONE
    is_shell: bool = False
    """Whether a shell reads its lines, where a parenthesis outside quotes is no text."""

    @property
    def is_configuration(self) -> bool:
        """Whether names in it say what their values are."""
        return self.syntax not in (Syntax.TEXT, Syntax.OTHER) and self.profile is not Profile.DATA


_SYNTAX_BY_SUFFIX = {
    Syntax.JSON: ("json", "json5", "jsonc", "tfstate", "har", "ipynb", "webmanifest"),
    Syntax.LINES: (
        *("yaml", "yml", "ini", "cfg", "conf", "cnf", "properties", "tfvars", "config", "prefs"),
        *("example", "sample", "template", "tmpl", "tpl", "dist", "default", "defaults"),
        *("service", "timer", "socket", "desktop", "tf", "hcl"),
    ),
    Syntax.TOML: ("toml",),
    Syntax.XML: ("xml", "plist", "pom", "csproj", "props"),
    Syntax.TEXT: (
        *("jsonl", "ndjson", "md", "markdown", "mdx", "txt", "log", "rst", "org", "adoc", "csv"),
        *("tsv", "history", "out", "err", "eml", "mbox", "tex"),
    ),
}
_BY_SUFFIX = {suffix: syntax for syntax, all_of in _SYNTAX_BY_SUFFIX.items() for suffix in all_of}

_DATA_NAMES = (
    *("package-lock.json", "npm-shrinkwrap.json", "composer.lock", "pnpm-lock.yaml", "*.lock.json"),
    *("*.schema.json", "tokenizer*.json", "special_tokens_map.json", "vocab.json", "*.ipynb"),
    *("added_tokens.json", "manifest.json", "api_conversation_history.json", "ui_messages.json"),
    *("openapi.*", "swagger.*", "*.geojson"),
)
_STORES = (
    *(".docker/config.json", "docker/config.json", ".kube/config", ".kube/*.yaml", ".kube/*.yml"),
    *("kubeconfig", "kubeconfig.*", "*.kubeconfig", "*-kubeconfig", ".dockercfg"),
)
_LOGINS = (
    # agents and their tools
    *(".claude.json", ".mcp.json", "mcp.json", "mcp_config.json", "*mcp_settings.json"),
    *("mcp-config.json", ".claude/settings*.json", ".gemini/settings.json", ".qwen/settings.json"),
    *("openclaw.json", "clawdbot.json", "moltbot.json", ".codex/config.toml", "codex/config.toml"),
    *("goose/config.yaml", ".hermes/config.yaml", ".hermes/*.json", ".aider.conf.yml"),
    *(".continue/config.json", ".continue/config.yaml", "opencode.json", "opencode.jsonc"),
    *(".openhands/settings.json", "agent_settings.json", ".openhands/config.toml"),
    *(".letta/settings*.json", ".mem0/config.json", "characters/*.json", "*.character.json"),
    *("claude_desktop_config.json", ".vscode/settings.json", "user/settings.json"),
    *("zed/settings.json", "librechat.yaml", "litellm_config.yaml", "litellm*.yaml"),
    # packages, builds and version control
    *(".npmrc", "npmrc", ".yarnrc", ".yarnrc.yml", "pip.conf", "pip.ini", ".condarc"),
    *(".m2/settings*.xml", "nuget.config", "gradle.properties", "bunfig.toml", "uv.toml"),
    *(".git/config", ".gitconfig", "git/config", ".git/config.worktree", ".git/modules/*/config"),
    *(".gitmodules", "helm/repositories.yaml", "terraform.tfstate", "*.tfvars", "*.auto.tfvars"),
    # mail and chat
    *(".muttrc", ".neomuttrc", "irssi/config", ".irssi/config"),
)
_TEXT_NAMES = (
    *("*_history", "*.history", ".history", "history", "fetch_head"),
    *("typescript", ".viminfo", ".lesshst"),
)


_SHELL_NAMES = frozenset(
    {".profile", ".zprofile", ".xprofile", ".bash_profile", ".bash_login", ".bash_logout"}
    | {".bash_aliases", ".bash_functions", ".bash_exports", ".bash_env", ".aliases", ".functions"}
    | {".exports", ".zshenv", ".zlogin", ".zlogout", ".login", ".logout", ".xsession", ".envrc"}
    | {".bashrc", ".zshrc", ".kshrc", ".mkshrc", ".cshrc", ".tcshrc", ".shrc", ".ashrc", ".xinitrc"}
    | {".xsessionrc", ".xserverrc", "bash.bashrc", "bashrc", "zshrc", "zshenv", "zprofile"}
    | {"crontab", "makefile", "gnumakefile", "dockerfile", "containerfile"}
)
"""Read by a shell, or handed to one line by line."""

_SHELL_SUFFIXES = frozenset({"fish", "env", "mk", "crontab", "dockerfile"})
_LINE_NAMES = frozenset({"caddyfile", "procfile"})
_LINE_FOLDERS = frozenset({".config", "etc"})
_FOLDER_NAMES = frozenset({"config", "settings", "credentials", "auth", "secrets", "token"})
"""Settings without a suffix, where they lie in a folder of settings."""

_NAMED = Tails(
    [(pattern, Profile.STORE) for pattern in _STORES]
    + [(pattern, Profile.LOGIN) for pattern in _LOGINS]
    + [(pattern, Profile.NONE) for pattern in _TEXT_NAMES]
    + [(pattern, Profile.DATA) for pattern in _DATA_NAMES]
)


def form_of(path: bytes) -> Form:
    """Return the form that the last parts of ``path`` say; copies have that of the original."""
    folder, _, name = path.rpartition(b"/")
    if b".git/logs" in folder:
        return Form(syntax=Syntax.TEXT)
    found = _of_name(name)
    if isinstance(found, Form):
        return found
    above = _parts_of(folder)
    for name_text in found:
        profile = _NAMED.find([*above, name_text])
        if profile is Profile.NONE:
            return Form(syntax=Syntax.TEXT)
        if profile is not None:
            return Form(syntax=_syntax_of(name_text), profile=profile)
    form = _by_suffix(found)
    if form.syntax is Syntax.OTHER and _is_settings(found, above):
        return Form(syntax=Syntax.LINES)
    return form


def _is_settings(names: tuple[str, ...], above: tuple[str, ...]) -> bool:
    """Return whether a name without a suffix is that of settings in a folder of settings."""
    return any(map(_may_be_settings, names)) and not _LINE_FOLDERS.isdisjoint(above[-3:])


def _may_be_settings(name: str) -> bool:
    return name in _FOLDER_NAMES or (name.endswith("rc") and "." not in name)


@lru_cache(16)
def _parts_of(folder: bytes) -> tuple[str, ...]:
    return tuple(folded(part) for part in text_of(folder).split("/"))


@lru_cache(65_536)
def _of_name(name: bytes) -> Form | tuple[str, ...]:
    """Return the form that a name alone tells, or its readings where the path matters."""
    names = undecorated(folded(text_of(name)))
    if any(_NAMED.candidates(one) or _may_be_settings(one) for one in names):
        return names
    return _by_suffix(names)


def _by_suffix(names: tuple[str, ...]) -> Form:
    for one in names:
        if _is_shell(one):
            return Form(syntax=Syntax.LINES, is_shell=True)
        if one in _LINE_NAMES:
            return Form(syntax=Syntax.LINES)
        syntax = _BY_SUFFIX.get(one.rpartition(".")[2]) if "." in one[1:] else None
        if syntax is not None:
            return Form(syntax=syntax)
        if one.startswith(".") and one.endswith("rc"):
            return Form(syntax=Syntax.LINES)
    return Form(syntax=Syntax.OTHER)


def _is_shell(name: str) -> bool:
    if name in _SHELL_NAMES or name.startswith(("dockerfile.", "containerfile.")):
        return True
    return "." in name and name.rpartition(".")[2] in _SHELL_SUFFIXES


def _syntax_of(path: str) -> Syntax:
    if path.endswith("nuget.config"):
        return Syntax.XML
    if path.endswith(".dockercfg"):
        return Syntax.JSON
    return _BY_SUFFIX.get(path.rpartition(".")[2], Syntax.LINES)
