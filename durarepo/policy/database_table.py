"""The rules for databases that hold work and logins in one file, and for those of logins alone.

Data, to be read. Deletion is by table and condition, so a rule says nothing about a value. The
statements are run on a captured copy and never on the source.
Source: the schemas of the programs named, spec/exclusion.md 6. Start at `DATABASE_RULES`.
"""

from durarepo.policy.rules import DatabaseRule, Word

_ANY = ("*",)
_EDITOR = ("state.vscdb", "state.vscdb.backup")

DATABASE_RULES = (
    DatabaseRule(
        id="sqlite-cookies-chromium",
        word=Word.COOKIES,
        reason="a cookie store of Chromium, under whatever name",
        source="Chromium net/extras/sqlite",
        names=_ANY,
        table="cookies",
        columns=("host_key", "encrypted_value"),
        whole=True,
    ),
    DatabaseRule(
        id="sqlite-cookies-firefox",
        word=Word.COOKIES,
        reason="a cookie store of Firefox, under whatever name",
        source="Firefox netwerk/cookie",
        names=_ANY,
        table="moz_cookies",
        columns=("host", "value"),
        whole=True,
    ),
    DatabaseRule(
        id="sqlite-logins",
        word=Word.PASSWORDS,
        reason="a password store of Chromium, under whatever name",
        source="Chromium components/password_manager",
        names=_ANY,
        table="logins",
        columns=("origin_url", "password_value"),
        whole=True,
    ),
    DatabaseRule(
        id="sqlite-nss-keys",
        word=Word.PRIVATE_KEYS,
        reason="a key store of NSS, under whatever name",
        source="NSS shared database documentation",
        names=_ANY,
        table="nssPrivate",
        columns=("id",),
        whole=True,
    ),
    DatabaseRule(
        id="sqlite-editor-login",
        word=Word.TOKENS,
        reason="the login of an editor, in the database of its chats",
        source="VS Code secret storage, Cursor, Windsurf",
        names=_EDITOR,
        table="ItemTable",
        columns=("key", "value"),
        where=(
            "key LIKE 'cursorAuth/%' OR key LIKE 'secret://%' OR key LIKE '%accessToken%'"
            " OR key LIKE '%refreshToken%' OR key LIKE '%.auth' OR key LIKE '%authStatus%'"
            " OR key LIKE '%apiKey%' OR key LIKE '%credential%' OR key LIKE 'codeium.%session%'"
        ),
    ),
    DatabaseRule(
        id="sqlite-editor-text",
        word=Word.TOKENS,
        reason="a credential of known form in a chat of an editor",
        source="VS Code and Cursor state databases",
        names=_EDITOR,
        table="ItemTable",
        columns=("key", "value"),
        redact="value",
    ),
    DatabaseRule(
        id="sqlite-cursor-text",
        word=Word.TOKENS,
        reason="a credential of known form in a chat of Cursor",
        source="Cursor state database",
        names=_EDITOR,
        table="cursorDiskKV",
        columns=("key", "value"),
        redact="value",
    ),
    DatabaseRule(
        id="sqlite-goose-text",
        word=Word.TOKENS,
        reason="a credential of known form in a message of Goose",
        source="Goose session database",
        names=("sessions.db",),
        table="messages",
        columns=("content_json",),
        redact="content_json",
    ),
    DatabaseRule(
        id="sqlite-webui-password",
        word=Word.PASSWORDS,
        reason="password hashes of Open WebUI",
        source="Open WebUI models/auths",
        names=("webui.db",),
        table="auth",
        columns=("email", "password"),
        where="password IS NOT NULL AND password <> ''",
    ),
    DatabaseRule(
        id="sqlite-webui-keys",
        word=Word.API_KEYS,
        reason="API keys of Open WebUI users",
        source="Open WebUI models/users",
        names=("webui.db",),
        table="api_key",
        columns=("key",),
        where="key IS NOT NULL",
    ),
    DatabaseRule(
        id="sqlite-webui-config",
        word=Word.API_KEYS,
        reason="provider keys in the configuration of Open WebUI",
        source="Open WebUI config table",
        names=("webui.db",),
        table="config",
        columns=("id", "data"),
        redact="data",
    ),
    DatabaseRule(
        id="sqlite-webui-chat",
        word=Word.TOKENS,
        reason="a credential of known form in a chat of Open WebUI",
        source="Open WebUI models/chats",
        names=("webui.db",),
        table="chat",
        columns=("id", "chat"),
        redact="chat",
    ),
    DatabaseRule(
        id="sqlite-openclaw-auth",
        word=Word.CREDENTIALS,
        reason="auth profiles of OpenClaw, in its shared state",
        source="OpenClaw state documentation",
        names=("openclaw.sqlite",),
        table="auth_profiles",
        columns=(),
        where="1",
    ),
)
"""Asked in this order of every database that is captured."""
