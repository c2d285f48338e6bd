"""Makes fresh instances of settings: every form that a secret can stand in, and the same without.

``@N`` is a name that says secret and ``@S`` its value; nothing stands here as it is stored. A
third part of `fresh`, with the same rules. Start at `FORMS`.
"""

from dataclasses import dataclass

from tests.policy.cases import Case
from tests.policy.fresh import HEX, Draw, Make, case_of, folders, text, word

NAMES = ("password", "db_password", "api_key", "client_secret", "botToken", "ACCESS_TOKEN")


@dataclass(frozen=True, slots=True)
class SettingsForm:
    """A file in which a secret stands; ``is_taken`` says that its value alone can go."""

    path: str
    body: str
    is_taken: bool = True

    def filled(self, name: str, value: str) -> str:
        """Return the file with a name and a value."""
        return self.body.replace("@N", name).replace("@S", value)


FORMS = (
    # YAML
    SettingsForm("a.yaml", "db:\n  @N:\n    @S\n  port: 1\n"),
    SettingsForm("a.yaml", "@N: &a @S\nb: *a\n"),
    SettingsForm("a.yaml", "@N: !!str @S\n"),
    SettingsForm("a.yaml", "@N: !!str\n  @S\n"),
    SettingsForm("a.yaml", "env:\n- {name: @N, value: @S}\n"),
    SettingsForm("a.yaml", "env:\n- {value: '@S', name: '@N'}\n"),
    SettingsForm("a.yaml", "env:\n- value: @S\n  name: @N\n- value: 1\n  name: x\n"),
    SettingsForm("a.yaml", "env:\n- name: x\n  value: 1\n- value: @S\n  name: @N\n"),
    SettingsForm("a.yaml", '{@N: "@S"}\n'),
    SettingsForm("a.yaml", "{user: me, @N: @S}\n"),
    SettingsForm("a.yaml", "a: 1\n---\n@N: @S\n---\nb: 1\n"),
    SettingsForm("a.yaml", "--- {@N: @S}\n"),
    SettingsForm("a.yaml", "@N: >-\n  @S\n", is_taken=False),
    SettingsForm("a.yaml", '@N: "ab\n  @S"\n', is_taken=False),
    SettingsForm("a.yaml", "# @N: @S\nb: 1\n"),
    SettingsForm("a.yaml", "env: {\n  @N: @S,\n  b: 1\n}\n"),
    SettingsForm("a.yaml", 'args: ["--api-key",\n  "@S"]\n'),
    SettingsForm("a.yaml", "args:\n- --api-key\n- @S\n"),
    SettingsForm("a.yaml", "command: run --api-key @S -v\n"),
    SettingsForm("a.yaml", "\ufeff@N: @S\n"),
    SettingsForm("a.yaml", "secrets:\n  x: @S\n"),
    SettingsForm("a.yaml", '"pass\\u0077ord": "@S"\n'),
    SettingsForm("a.yaml", '"p\\x61ssword": "@S"\n'),
    # TOML
    SettingsForm("a.toml", '@N = """\n@S"""\n'),
    SettingsForm("a.toml", "@N = '''\n@S\n'''\nb = 1\n"),
    SettingsForm("a.toml", 'dbs = [\n  { user = "x",\n @N = "@S" },\n]\n'),
    SettingsForm("a.toml", 'db.@N = "@S"\n'),
    SettingsForm("a.toml", '"db" . "@N" = "@S"\n'),
    SettingsForm("a.toml", '"pass\\u0077ord" = "@S"\n'),
    SettingsForm("a.toml", 'args = [\n"--api-key",\n"@S"]\n'),
    SettingsForm("a.toml", '[[x]]\nvalue = "@S"\nname = "@N"\n'),
    SettingsForm("a.toml", '\ufeff@N = "@S"\n'),
    SettingsForm("a.toml", '# @N = "@S"\nb = 1\n'),
    SettingsForm("a.toml", 'broken = \n@N = "@S"\n'),
    SettingsForm(".codex/config.toml", '[mcp_servers.x.env]\nX_Y = "@S"\n'),
    SettingsForm(".codex/config.toml", '[mcp_servers.x]\nenv.X_Y = "@S"\n'),
    SettingsForm(".codex/config.toml", 'mcp_servers.x.env = {\n"X_Y" = "@S" }\n'),
    # JSON
    SettingsForm("a.json", '{"a": {\n"@N":\n  "@S"}}'),
    SettingsForm("a.json5", "{@N:'@S'}"),
    SettingsForm("a.json", '{@N: "@S",}'),
    SettingsForm("a.json5", "// @N: '@S'\n{}"),
    SettingsForm("a.json", '{"pass\\u0077ord": "@S"}'),
    SettingsForm("a.json", '{"pass\\u0077ord": "@S",}'),
    SettingsForm("a.json", '{"a":[{"value": "@S", "name": "@N"}]}'),
    SettingsForm("a.json", '{"@N": "@S", "@N": "x"}'),
    SettingsForm("a.json", '\ufeff{"@N": "@S"}'),
    SettingsForm("a.json", '{"@N": "@S'),
    SettingsForm("a.json", '{"x": "{\\"@N\\": \\"@S\\"}"}'),
    SettingsForm("a.json", '{"url": "postgres:\\/\\/me:@S@db.example\\/x"}'),
    SettingsForm("a.json", '{"D": "Server=x;Database=y;User Id=me;Password=@S;"}'),
    SettingsForm("a.json", '{"D": "host=db user=me password=@S dbname=x"}'),
    SettingsForm("a.json", '[{"ParameterKey": "DbPassword", "ParameterValue": "@S"}]'),
    SettingsForm("a.json", '{"command": "run --api-key @S -v"}'),
    SettingsForm("a.har", '{"headers": [{"name": "X-Api-Key",\n "value": "@S"}]}'),
    SettingsForm("a.har", '{"cookies": [{"name": "sid", "value": "@S"}]}'),
    SettingsForm("a.json", '{"credentials": {"x": "@S"}}'),
    SettingsForm("a.json", '{"secrets": {\n"x": "@S"}}'),
    SettingsForm("a.json", '{"api_keys": ["@S"]}'),
    SettingsForm("a.json", '{"cookies": {"sid": "@S"}}'),
    SettingsForm("a.json", '{"passwords": [\n"x", "@S"]}'),
    SettingsForm("a.json", '{"@N": ["@S"]}'),
    SettingsForm("a.json", '{"@N": {"value": "@S"}}'),
    SettingsForm("a.json", '{"@N"\n: "@S"}'),
    SettingsForm("a.jsonc", '{"@N": /* mine */ "@S"}'),
    SettingsForm("a.jsonc", '{"@N": // mine\n"@S"}'),
    SettingsForm("a.jsonc", '{"@N" /* mine */ : "@S"}'),
    SettingsForm("a.json", '{"args": ["-e", "X_API_KEY=@S"]}'),
    SettingsForm("a.json", '{"args": ["--header", "X-API-Key: @S"]}'),
    SettingsForm("a.json", '{"url": "https://x.example/mcp?exaApiKey=@S"}'),
    SettingsForm("a.json", '{"url": "https://x.example/mcp?a=b&api_key=@S&c=d"}'),
    SettingsForm(".mcp.json", '{"m": {"args": ["run", "-e", "N_API_KEY=@S", "img"]}}'),
    SettingsForm(".mcp.json", '{"m": {"args": ["-c", "N_API_KEY=@S npx x"]}}'),
    SettingsForm(".mcp.json", '{"m": {"args": ["--header", "Authorization: token @S"]}}'),
    SettingsForm(".claude/settings.local.json", '{"allow": ["Bash(DB_PASSWORD=@S ./a:*)"]}'),
    SettingsForm(".claude/settings.local.json", '{"allow": ["Bash(PGPASSWORD=\'@S\' a:*)"]}'),
    SettingsForm("a.json", '{"c": "curl -H \\"X-Api-Key: @S\\" x"}'),
    SettingsForm(".codex/config.toml", '[m.x]\nargs = ["run", "-e", "N_API_KEY=@S"]\n'),
    SettingsForm(".codex/config.toml", '[m.x]\nurl = "https://x.example/?apiKey=@S"\n'),
    SettingsForm("a.yaml", "args: [run, -e, N_API_KEY=@S]\n"),
    SettingsForm("a.yaml", "url: https://x.example/?access_token=@S&a=b\n"),
    SettingsForm(".babelrc", '{"a": {"@N": "@S"}}'),
    # XML
    SettingsForm("a.xml", "<a><password><![CDATA[@S]]></password></a>"),
    SettingsForm("a.xml", "<p><name>fs.secret.key</name>\n<value>@S</value></p>"),
    SettingsForm("a.xml", '<add value="@S" key="@N" />'),
    SettingsForm("a.xml", '<s name="Password" as="String"><value>@S</value></s>', is_taken=False),
    SettingsForm("a.xml", '<entry key="db.password">@S</entry>', is_taken=False),
    SettingsForm("a.xml", "<!-- <password>@S</password> --><a/>"),
    SettingsForm("web.config", '<add connectionString="Server=x;User Id=me;Password=@S;" />'),
    # lines
    SettingsForm("a.properties", "@N @S\n"),
    SettingsForm("a.properties", "@N:@S\n"),
    SettingsForm("a.properties", "db.@N = \\\n   @S\n"),
    SettingsForm("a.properties", "db.@N = @S\\\n   ab\n", is_taken=False),
    SettingsForm("a.properties", "db.pass\\u0077ord = @S\n"),
    SettingsForm(".git/config", "[credential] password=@S\n"),
    SettingsForm("x.ini", "\ufeff@N=@S\n"),
    SettingsForm("x.ini", "\ufeff[a]\n@N=@S\n"),
    SettingsForm("x.ini", "; @N=@S\n"),
    SettingsForm("x.ini", "user=me;password=@S\n"),
    SettingsForm("redis.conf", "requirepass @S\n"),
    SettingsForm("a.conf", "define('DB_PASSWORD', '@S');\n", is_taken=False),
)

_WIDE = ("utf-16", "utf-16-le", "utf-16-be", "utf-32")
_UNSET = ("${TOKEN}", "<your token>", "changeme-please-now", "vault:kv/data/x#y", "")
_WORK = (
    "commit: @H\nrevision: @H\n",
    "# the token is read from the environment\nname: @W\n",
    "password_file: /run/secrets/@W\nmax_tokens: 4096\n",
    "description: |\n  Password used to encrypt the PKCS#12 certificate, see RFC 2104.\n",
    '{"properties": {"token": {"type": "string", "description": "of @W"}}}',
    "[@W]\nurl = https://x.example/@H\n",
)


def hidden_setting(draw: Draw) -> Case:
    """A secret in a form that a reader of plain settings passes over."""
    form = draw.choice(FORMS)
    secret = text(draw, draw.randint(24, 40))
    body = form.filled(draw.choice(NAMES), secret)
    path = folders(draw) + form.path
    return case_of("structured", path, body, "exclude", redact_ok=True, secrets=(secret,))


def wide_setting(draw: Draw) -> Case:
    """The same in letters of two or four bytes, from which nothing is taken out."""
    form = draw.choice(FORMS)
    secret = text(draw, draw.randint(24, 40))
    body = form.filled(draw.choice(NAMES), secret).lstrip("\ufeff")
    coded = body.encode(draw.choice(_WIDE))
    return case_of("structured", folders(draw) + form.path, coded, "exclude", secrets=(secret,))


def unset_setting(draw: Draw) -> Case:
    """The same forms with a reference or nothing in them, and settings that look like them."""
    if draw.random() < 0.3:
        body = draw.choice(_WORK).replace("@H", text(draw, 40, HEX)).replace("@W", word(draw))
        name = draw.choice(("a.yaml", "a.json", "a.ini", "a.conf"))
        return case_of("structured-clean", folders(draw) + name, body, "include")
    form = draw.choice(FORMS)
    body = form.filled(draw.choice(NAMES), draw.choice(_UNSET))
    coded = body.encode(draw.choice(("utf-8", "utf-8", "utf-16-le")))
    return case_of("structured-clean", folders(draw) + form.path, coded, "include")


SETTINGS_KINDS: dict[str, Make] = {
    "hidden-setting": hidden_setting,
    "wide-setting": wide_setting,
    "unset-setting": unset_setting,
}
"""How an instance of each kind of settings is made."""
