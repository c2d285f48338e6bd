"""The rules that decide by content: private-key headers and credentials of known form.

Data, to be read. Patterns are written from the documentation of the formats, over bytes.
None of them is itself a header or a credential, and neither is anything in this file: it
would be left out of its own backup. ``probe`` is what an engine looks for; see `ContentRule`.
A pattern that begins with one class of bytes, as ``[Pp]``, is found three times as fast as one
that begins with a choice.
Source: RFC 7468, RFC 7517 and the documentation named in each row, spec/exclusion.md 3.
Start at `CONTENT_RULES`.
"""

import base64

from durarepo.policy.rules import Check, ContentRule, Scope, Word

_LABEL = r"(?:[A-Za-z0-9_.:/+-]{1,40}(?: |%20)){0,6}"
_SPACE = r"(?: |%20)"
_FIVE = r"-----"
_BEGIN = _FIVE + r"BEGIN" + _SPACE
_ESCAPED_LINE = r"(?:\r\n|\n|\r|\\r\\n|\\n|\\\\n)"
_BECH32 = "[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]"
_PROBE_SHORT, _PROBE_LONG, _PREFIX_LONG = 4, 10, 5
_WORD_AFTER = r"(?![A-Za-z0-9_])"


_DISTINCT = frozenset(
    {
        *("github", "github-fine", "gitlab", "anthropic", "openrouter", "google-client", "slack"),
        *("slack-app", "slack-hook", "discord-hook", "teams-hook", "stripe-hook", "shopify"),
        *("brevo", "npm", "pypi", "rubygems", "docker", "groq", "xai", "perplexity", "nvidia"),
        *("together", "langsmith", "pinecone", "tavily", "jina", "browserbase", "supabase"),
        *("planetscale", "netlify", "digitalocean", "heroku", "fly", "grafana", "newrelic"),
        *("sentry", "linear", "notion", "postman", "tailscale", "buildkite", "circleci"),
    }
)
"""Tokens whose prefix is no end of a word; of the others, such as ``sk-`` or ``key_``, it is."""


def _header(name: str, probe: str, pattern: str, reason: str, source: str) -> ContentRule:
    """Return the rule of a private-key header; the file that holds one goes as a whole."""
    return ContentRule(
        id=name,
        word=Word.PRIVATE_KEYS,
        reason=reason,
        source=source,
        probe=probe,
        pattern=pattern,
        scope=Scope.WHOLE,
    )


def _start(name: str, pattern: str, reason: str, source: str) -> ContentRule:
    """Return the rule of a binary key file, known by its first bytes."""
    return ContentRule(
        id=name,
        word=Word.PRIVATE_KEYS,
        reason=reason,
        source=source,
        probe="",
        pattern=pattern,
        scope=Scope.WHOLE,
        at_start=True,
    )


def _token(
    name: str,
    prefix: str,
    body: str,
    reason: str,
    *,
    check: Check = Check.FILLED,
    probe: str = "",
) -> ContentRule:
    """Return the rule of a token: a prefix that nothing else has, then a body of known form.

    ``body`` is one class with bounds, such as ``[a-z]{32}``, or several parts. The probe takes
    the prefix and some characters of the first class, unless another one is given.
    """
    first, _, bounds = body.partition("{")
    least = int(bounds.split("}")[0].split(",")[0])
    some = min(least, _PROBE_LONG if len(prefix) < _PREFIX_LONG else _PROBE_SHORT)
    return ContentRule(
        id=f"token-{name}",
        word=Word.TOKENS,
        reason=f"{reason}, by its prefix and length",
        source=f"documentation of {reason.partition(' of ')[2] or reason}",
        probe=probe or f"(?:{prefix}){first}{{{some}}}",
        pattern=f"(?P<secret>(?:{prefix}){body}){_WORD_AFTER}",
        prefix=prefix,
        is_distinct=name in _DISTINCT,
        scope=Scope.SPAN,
        check=check,
    )


def _base64_probes() -> str:
    """Return what base64 makes of the fixed parts of a header, in all three alignments."""
    found: list[str] = []
    for text in (b"-" * 5 + b"BEGIN ", b"PRIVATE KEY" + b"-" * 5):
        for shift in range(3):
            encoded = base64.b64encode(bytes(shift) + text).decode("ascii").rstrip("=")
            first = (0, 2, 3)[shift]
            last = len(encoded) - (1 if (shift + len(text)) % 3 else 0)
            found.append(encoded[first:last])
    return "|".join(found).replace("+", r"\+")


BASE64_PROBES = _base64_probes()

_KEYS = (
    _header(
        "key-pem",
        r"(?:PRIVATE|SECRET)(?: |%20)KEY(?:(?: |%20)BLOCK)?-----",
        rf"{_BEGIN}{_LABEL}(?:PRIVATE|SECRET){_SPACE}KEY(?:{_SPACE}BLOCK)?{_FIVE}",
        "the opening line of a private key, whatever its label says before the key words",
        "RFC 7468 and its erratum 4508, RFC 4880, OpenSSH PROTOCOL.key",
    ),
    _header(
        "key-ssh2",
        r"---- BEGIN SSH2 (?:ENCRYPTED )?PRIVATE KEY ----",
        r"---- BEGIN SSH2 (?:ENCRYPTED )?PRIVATE KEY ----",
        "the opening line of a private key of SSH Tectia",
        "RFC 4716 and SSH Tectia documentation",
    ),
    _header(
        "key-ssh1",
        r"SSH PRIVATE KEY FILE FORMAT 1\.1\n\x00",
        r"SSH PRIVATE KEY FILE FORMAT 1\.1\n\x00",
        "the first line of a private key of SSH protocol 1",
        "OpenSSH authfile.c",
    ),
    _header(
        "key-putty",
        r"PuTTY-User-Key-File-[123]: ",
        r"PuTTY-User-Key-File-[123]: ",
        "the first line of a PuTTY key file",
        "PuTTY documentation, appendix C",
    ),
    _header(
        "key-age",
        rf"AGE-SECRET-KEY-(?:PQ-)?1{_BECH32}{{20}}",
        rf"AGE-SECRET-KEY-(?:PQ-)?1{_BECH32}{{50}}",
        "an age identity, with its body",
        "age specification, C2SP",
    ),
    _header(
        "key-minisign",
        r"untrusted comment: ",
        rf"untrusted comment: [^\r\n\\]{{0,400}}{_ESCAPED_LINE}[> \t]{{0,16}}"
        r"RW[A-Za-z0-9+/]{120}",
        "a secret key of minisign or signify; signatures and public keys are shorter",
        "minisign and signify documentation",
    ),
    _header(
        "key-openvpn",
        r"BEGIN OpenVPN ",
        rf"{_FIVE}BEGIN OpenVPN (?:Static key V[0-9]|tls-crypt-v2 (?:client|server) key){_FIVE}",
        "the opening line of a static key of OpenVPN",
        "OpenVPN manual",
    ),
    _header(
        "key-nkey",
        r"BEGIN (?:USER|ACCOUNT|OPERATOR) NKEY SEED-",
        rf"{_FIVE}BEGIN (?:USER|ACCOUNT|OPERATOR) NKEY SEED{_FIVE}",
        "the opening line of a seed of NATS",
        "NATS documentation",
    ),
    _header(
        "key-dnssec",
        r"Private-key-format: v1\.",
        r"Private-key-format: v1\.[0-9]",
        "the first line of a DNSSEC private key",
        "BIND 9 administrator reference",
    ),
    ContentRule(
        id="key-tsig",
        word=Word.PRIVATE_KEYS,
        reason="a TSIG key of BIND",
        source="BIND 9 administrator reference",
        probe=r"secret[ \t]+\"[A-Za-z0-9+/]{16}",
        pattern=(
            r"(?s:hmac-[a-z0-9-]{3,12}\"?;\s{1,20}secret\s{1,20}\"[A-Za-z0-9+/]{16,128}={0,2}\""
            r"|secret\s{1,20}\"[A-Za-z0-9+/]{16,128}={0,2}\";\s{1,20}algorithm\s{1,20}\"?hmac-)"
        ),
        scope=Scope.WHOLE,
        check=Check.FILLED,
    ),
    _header(
        "key-expression",
        r"\((?:11:|21:protected-|protected-)?private-key",
        r"\((?:11:private-key|21:protected-private-key"
        r"|(?:protected-)?private-key\s{0,8}\([a-z-]{2,16}\s{1,8}"
        r"(?:\([a-z-]{1,12} [A-Za-z0-9#\" -]{1,40}\)\s{0,8}){0,2}"
        r"\([a-z]{1,5}\s{0,8}#[0-9A-Fa-f]{8})",
        "a private key of GnuPG, as it stands in its folder",
        "gnupg doc/keyformat.txt, libgcrypt manual",
    ),
    ContentRule(
        id="key-wireguard",
        word=Word.PRIVATE_KEYS,
        reason="a private or preshared key of WireGuard",
        source="wg(8)",
        probe=r"[Pp](?:rivate|reshared|RIVATE)_?(?:[Kk]ey|KEY)\\{0,2}[\"']?[ \t]*[=:]",
        pattern=(
            r"[Pp](?:rivate|reshared|RIVATE)_?(?:[Kk]ey|KEY)\\{0,2}[\"']?"
            r"[ \t]{0,8}[=:][ \t]{0,8}"
            r"\\{0,2}[\"']?(?P<secret>[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=)(?![A-Za-z0-9+/=])"
        ),
        scope=Scope.WHOLE,
        check=Check.FILLED,
    ),
    ContentRule(
        id="key-jwk",
        word=Word.PRIVATE_KEYS,
        reason="a JSON Web Key with a private or symmetric member",
        source="RFC 7517, RFC 7518, RFC 8037",
        probe=r"\"[dk]\\{0,3}\"[ \t\r\n]*:[ \t\r\n]*\\{0,3}\"[A-Za-z0-9_-]{20}",
        pattern=r"\"(?P<member>[dk])\\{0,3}\"\s{0,16}:\s{0,16}\\{0,3}\"(?P<secret>[A-Za-z0-9_-]{22,2800})\\{0,3}\"",
        scope=Scope.WHOLE,
        check=Check.JWK,
    ),
    _header(
        "key-xml",
        r"<D>[A-Za-z0-9+/]{20}",
        r"<RSAKeyValue>(?:(?!<RSAKeyValue>)(?s:.)){0,6000}?<D>[A-Za-z0-9+/\s]{40}",
        "an RSA key in XML with its private exponent",
        ".NET documentation, RSA.ToXmlString",
    ),
    _header(
        "key-ethereum",
        r"\"kdfparams\\{0,2}\"",
        r"(?:\"ciphertext\\{0,2}\"\s{0,8}:\s{0,8}\\{0,2}\"[0-9a-f]{32}"
        r"(?:(?!\"ciphertext)(?s:.)){0,1500}?\"kdfparams\\{0,2}\""
        r"|\"kdfparams\\{0,2}\"(?:(?!\"kdfparams)(?s:.)){0,1500}?\"ciphertext\\{0,2}\"\s{0,8}:\s{0,8}\\{0,2}\"[0-9a-f]{32})",
        "an encrypted key of an Ethereum keystore",
        "Web3 Secret Storage Definition",
    ),
    _header(
        "key-bip32",
        r"[xyzt]prv[1-9A-HJ-NP-Za-km-z]{20}",
        r"(?<![A-Za-z0-9])[xyzt]prv[1-9A-HJ-NP-Za-km-z]{107}(?![A-Za-z0-9])",
        "an extended private key of a wallet",
        "BIP 32",
    ),
    _header(
        "key-onion",
        r"== ed25519v1-secret: type[0] ==",
        r"== ed25519v1-secret: type[0] ==",
        "the secret key of an onion service",
        "Tor rend-spec-v3",
    ),
    ContentRule(
        id="key-base64",
        word=Word.PRIVATE_KEYS,
        reason="base64 of something that holds a private-key header, in any alignment",
        source="RFC 4648; Kubernetes secrets and CI variables hold keys so",
        probe=BASE64_PROBES,
        pattern=rf"(?:{BASE64_PROBES})",
        scope=Scope.WHOLE,
        check=Check.BASE64,
    ),
    _start(
        "key-der",
        r"0(?:\x82..|\x81.|[\x20-\x7f])\x02\x01(?:"
        r"\x00(?:\x02(?:\x82..|\x81.|[\x20-\x7f])|0[\x05-\x20]\x06[\x03-\x09])|\x01\x04[\x14-\x42])",
        "a private key in DER: PKCS 1, PKCS 8 or SEC 1",
        "RFC 8017, RFC 5958, RFC 5915",
    ),
    _start(
        "key-pkcs12",
        r"0(?:\x82..|\x83...|\x80)\x02\x01\x030",
        "a PKCS 12 container",
        "RFC 7292",
    ),
    _start(
        "key-keystore",
        r"(?:\xfe\xed\xfe\xed|\xce\xce\xce\xce)\x00\x00\x00[\x01\x02]....\x00\x00\x00[\x01\x03]",
        "a Java keystore whose first entry is a key",
        "OpenJDK JavaKeyStore, JCEKS",
    ),
    _start(
        "key-keepass",
        r"\x03\xd9\xa2\x9a[\x65-\x67]\xfb\x4b\xb5",
        "a KeePass database",
        "KeePass documentation",
    ),
    _start(
        "key-openpgp",
        r"(?:\x94.|\x95..|\x97|\xc5(?:[\x20-\xbf]|[\xc0-\xdf].|\xff....))\x04.{4}[\x01\x10\x11\x12\x13\x16\x19\x1b]",
        "an OpenPGP secret key that is not armoured",
        "RFC 9580, section 5.5.3",
    ),
)

_ALNUM = "[A-Za-z0-9]"
_URLSAFE = "[A-Za-z0-9_-]"
_HEX = "[0-9a-f]"

_TOKENS = (
    _token("github", "gh[pousr]_", _ALNUM + "{36,255}", "token of GitHub"),
    _token("github-fine", "github_pat_", "[A-Za-z0-9_]{50,255}", "fine-grained token of GitHub"),
    _token(
        "gitlab",
        "gl(?:pat|ptt|dt|rt|cbt|ft|imt|agent|oas|soat|ffct|wt)-|GR1348941",
        "[A-Za-z0-9_.-]{20,300}",
        "token of GitLab",
    ),
    _token("aws-id", "AKIA|ASIA|ABIA|ACCA", "[A-Z0-9]{16}", "access key id of AWS"),
    _token("aws-bedrock", "ABSK", "[A-Za-z0-9+/]{100,300}={0,2}", "API key of AWS Bedrock"),
    _token("anthropic", "sk-ant-[a-z]{2,10}[0-9]{2}-", _URLSAFE + "{40,300}", "key of Anthropic"),
    _token(
        "openai", "sk-(?:proj|svcacct|admin|service|None)-", _URLSAFE + "{40,300}", "key of OpenAI"
    ),
    _token(
        "sk", "sk-", _ALNUM + "{32,64}", "key of OpenAI and who copies its form", check=Check.RANDOM
    ),
    _token("openrouter", "sk-or-v1-", _HEX + "{64}", "key of OpenRouter"),
    _token("langfuse", "sk-lf-", "[0-9a-f-]{36}", "secret key of Langfuse"),
    _token("google-api", "AIza", _URLSAFE + "{35}", "API key of Google"),
    _token("google-client", "GOCSPX-", _URLSAFE + "{24,40}", "client secret of Google"),
    _token("google-access", r"ya29\.", _URLSAFE + "{30,1000}", "access token of Google"),
    _token("google-refresh", "1//0", _URLSAFE + "{40,200}", "refresh token of Google"),
    _token("slack", r"xox[abceoprs](?:\.xox[bp])?-", "[A-Za-z0-9-]{20,400}", "token of Slack"),
    _token("slack-app", "xapp-[0-9]-", "[A-Za-z0-9-]{30,300}", "app token of Slack"),
    _token(
        "slack-hook",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/",
        "[A-Za-z0-9]{8,16}/[A-Za-z0-9]{8,24}/[A-Za-z0-9/]{16,80}",
        "web hook of Slack",
    ),
    _token(
        "discord-hook",
        r"discord(?:app)?\.com/api/(?:v[0-9]{1,2}/)?webhooks/",
        "[0-9]{17,20}/[A-Za-z0-9_-]{60,80}",
        "web hook of Discord",
    ),
    _token(
        "teams-hook",
        r"webhook\.office\.com/webhookb2/",
        "[0-9a-f-]{36}@[A-Za-z0-9/@-]{40,160}",
        "web hook of Microsoft Teams",
    ),
    _token("stripe", "[sr]k_(?:live|test)_", _ALNUM + "{20,250}", "key of Stripe"),
    _token("stripe-hook", "whsec_", "[A-Za-z0-9+/]{24,100}={0,2}", "web hook secret of Stripe"),
    _token("square", "sq0[a-z]{3}-", _URLSAFE + "{22,60}", "token of Square"),
    _token("shopify", "shp(?:at|ca|pa|ss|tka)_", "[a-fA-F0-9]{32}", "token of Shopify"),
    _token("sendgrid", r"SG\.", r"[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{32,64}", "key of SendGrid"),
    _token("mailgun", "key-", _HEX + "{32}", "key of Mailgun"),
    _token(
        "mailchimp", "", _HEX + "{32}-us[0-9]{1,2}", "key of Mailchimp", probe=r"[0-9a-f]-us[0-9]"
    ),
    _token("twilio", "SK", _HEX + "{32}", "API key of Twilio"),
    _token("brevo", "xkeysib-", "[0-9a-f]{64}-[A-Za-z0-9]{16}", "key of Brevo"),
    _token(
        "resend",
        "re_",
        "[A-Za-z0-9]{8}_[A-Za-z0-9]{20,40}",
        "key of Resend",
        probe="re_[A-Za-z0-9]{8}_[A-Za-z0-9]{8}",
    ),
    _token("npm", "npm_", _ALNUM + "{36}", "token of npm"),
    _token("pypi", "pypi-AgE", _URLSAFE + "{40,1000}", "token of PyPI"),
    _token("rubygems", "rubygems_", _HEX + "{48}", "key of RubyGems"),
    _token("crates", "cio", _ALNUM + "{32}", "token of crates.io", check=Check.RANDOM),
    _token("nuget", "oy2", "[a-z0-9]{43}", "key of NuGet"),
    _token("docker", "dckr_(?:pat|oat)_", _URLSAFE + "{24,80}", "token of Docker Hub"),
    _token("huggingface", "hf_|api_org_", _ALNUM + "{34,60}", "token of Hugging Face"),
    _token("replicate", "r8_", _ALNUM + "{37,40}", "token of Replicate"),
    _token("groq", "gsk_", _ALNUM + "{40,80}", "key of Groq"),
    _token("xai", "xai-", _ALNUM + "{60,120}", "key of xAI"),
    _token("perplexity", "pplx-", _ALNUM + "{40,80}", "key of Perplexity"),
    _token("nvidia", "nvapi-", _URLSAFE + "{50,100}", "key of NVIDIA"),
    _token("fireworks", "fw_", _ALNUM + "{22,40}", "key of Fireworks", check=Check.RANDOM),
    _token("together", "tgp_v1_", _URLSAFE + "{40,60}", "key of Together"),
    _token("cerebras", "csk-", "[a-z0-9]{40,60}", "key of Cerebras", check=Check.RANDOM),
    _token("elevenlabs", "sk_", _HEX + "{48}", "key of ElevenLabs"),
    _token("langsmith", "lsv2_(?:pt|sk)_", "[0-9a-f]{32}_[0-9a-f]{10}", "key of LangSmith"),
    _token("pinecone", "pcsk_", "[A-Za-z0-9_]{40,120}", "key of Pinecone"),
    _token("tavily", "tvly-(?:dev-|prod-)?", _ALNUM + "{28,60}", "key of Tavily"),
    _token("firecrawl", "fc-", _HEX + "{32}", "key of Firecrawl"),
    _token("e2b", "e2b_", _HEX + "{40}", "key of E2B"),
    _token("jina", "jina_", "[0-9a-f]{32}[A-Za-z0-9_-]{28}", "key of Jina"),
    _token("voyage", "pa-", _URLSAFE + "{43}", "key of Voyage", check=Check.RANDOM),
    _token("browserbase", "bb_(?:live|test)_", _URLSAFE + "{20,60}", "key of Browserbase"),
    _token("supabase", "sbp_|sb_secret_", _URLSAFE + "{30,80}", "key of Supabase"),
    _token("planetscale", "pscale_(?:tkn|pw|oauth)_", "[A-Za-z0-9_.-]{32,64}", "PlanetScale key"),
    _token(
        "netlify",
        "nf[pcoub]_",
        _ALNUM + "{36}",
        "token of Netlify",
        probe="nf[pcoub]_[A-Za-z0-9]{20}",
    ),
    _token("digitalocean", "do[opr]_v1_", _HEX + "{64}", "token of DigitalOcean"),
    _token("heroku", "HRKU-", _URLSAFE + "{36,64}", "key of Heroku"),
    _token("fly", "FlyV1 fm[12][ar]?_", "[A-Za-z0-9+/=_,]{60,1000}", "token of Fly"),
    _token("render", "rnd_", _ALNUM + "{28,40}", "key of Render"),
    _token("cloudflare", "cf(?:ut|at|k)_|v1\\.0-", "[A-Za-z0-9-]{40,200}", "key of Cloudflare"),
    _token("vault", r"hv[sbr]\.", _URLSAFE + "{24,300}", "token of HashiCorp Vault"),
    _token(
        "terraform",
        r"",
        r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,80}",
        "token of HCP Terraform",
        probe=r"\.atlasv1\.",
    ),
    _token("databricks", "dapi", _HEX + "{32}(?:-[0-9])?", "token of Databricks"),
    _token("grafana", "glsa_", "[A-Za-z0-9]{32}_[0-9a-f]{8}", "service token of Grafana"),
    _token("grafana-cloud", "glc_", "[A-Za-z0-9+/]{32,400}={0,2}", "cloud token of Grafana"),
    _token("newrelic", "NR(?:AK|II)-", "[A-Za-z0-9_-]{24,40}", "key of New Relic"),
    _token("sentry", "sntry[su]_", "[A-Za-z0-9+/=_]{40,300}", "token of Sentry"),
    _token("linear", "lin_(?:api|oauth)_", _ALNUM + "{32,80}", "key of Linear"),
    _token(
        "notion",
        "ntn_|secret_",
        _ALNUM + "{43,50}",
        "token of Notion",
        check=Check.RANDOM,
        probe="(?:ntn_|secret_)[A-Za-z0-9]{20}",
    ),
    _token(
        "airtable",
        "pat",
        r"[A-Za-z0-9]{14}\.[0-9a-f]{64}",
        "token of Airtable",
        probe=r"pat[A-Za-z0-9]{14}\.[0-9a-f]{8}",
    ),
    _token("atlassian", "AT(?:ATT3|CTT3|BB)", "[A-Za-z0-9_=-]{32,300}", "token of Atlassian"),
    _token("figma", "fig[dour]h?_", _URLSAFE + "{36,80}", "token of Figma"),
    _token(
        "asana",
        "[12]/[0-9]{13,19}(?:/[0-9]{13,19})?:",
        _HEX + "{32}",
        "token of Asana",
        probe="[12]/[0-9]{13}",
    ),
    _token("postman", "PMAK-", "[0-9a-f]{24}-[0-9a-f]{34}", "key of Postman"),
    _token(
        "telegram",
        "[0-9]{8,11}:A",
        _URLSAFE + "{34}",
        "bot token of Telegram",
        check=Check.RANDOM,
        probe="[0-9]:A[A-Za-z0-9_-]{10}",
    ),
    _token(
        "discord",
        r"(?:M[Tjz]|N[DTjz]|O[DT])[A-Za-z0-9]{18,26}\.[A-Za-z0-9_-]{6}\.",
        _URLSAFE + "{27,40}",
        "bot token of Discord",
        check=Check.RANDOM,
        probe=r"(?:M[Tjz]|N[DTjz]|O[DT])[A-Za-z0-9]{18,26}\.[A-Za-z0-9_-]{6}\.",
    ),
    _token("tailscale", "tskey-[a-z]{2,12}-", "[A-Za-z0-9-]{20,100}", "key of Tailscale"),
    _token("doppler", r"dp\.(?:pt|st|sa|scim|audit|ct)\.", "[A-Za-z0-9_.-]{40,80}", "Doppler key"),
    _token("onepassword", "ops_eyJ", "[A-Za-z0-9+/=_-]{100,2000}", "service token of 1Password"),
    _token("pulumi", "pul-", _HEX + "{40}", "token of Pulumi"),
    _token("buildkite", "bkua_", _HEX + "{40}", "token of Buildkite"),
    _token("circleci", "CCIPAT_", "[A-Za-z0-9_]{40,100}", "token of CircleCI"),
    _token("sonar", "sq[upa]_", _HEX + "{40}", "token of SonarQube"),
    _token("artifactory", "AKCp", _ALNUM + "{60,80}", "key of Artifactory"),
    _token(
        "azure-storage",
        "(?:Account|SharedAccess)Key=",
        "[A-Za-z0-9+/]{43,88}={1,2}",
        "storage or service bus key of Azure",
    ),
    _token(
        "azure-client",
        r"[A-Za-z0-9_~.-]{3}[0-9]Q~",
        "[A-Za-z0-9_~.-]{31,34}",
        "client secret of Azure",
        check=Check.RANDOM,
        probe="[0-9]Q~[A-Za-z0-9_~.-]{10}",
    ),
    _token(
        "azure-sas",
        r"sig=",
        "[A-Za-z0-9%+/]{43,60}(?:%3[Dd]|=)",
        "shared access signature of Azure",
    ),
    _token(
        "facebook", "EAA", "[A-Za-z0-9]{90,400}", "access token of Facebook", check=Check.RANDOM
    ),
    _token("twitter", "AAAAAAAAAAAAAAAAAAAA", "[A-Za-z0-9%]{60,120}", "bearer token of X"),
    _token(
        "dropbox",
        r"sl\.(?:u\.)?",
        _URLSAFE + "{120,2000}",
        "token of Dropbox",
        probe=r"sl\.(?:u\.)?[A-Za-z0-9_-]{40}",
    ),
    _token(
        "plaid", "access-(?:sandbox|development|production)-", "[0-9a-f-]{36}", "token of Plaid"
    ),
    _token("cursor", "key_", _HEX + "{64}", "key of Cursor"),
    _token(
        "jwt",
        "eyJ",
        r"[A-Za-z0-9_-]{10,4000}\.eyJ[A-Za-z0-9_-]{10,4000}\.[A-Za-z0-9_-]{20,700}",
        "a signed JSON Web Token",
        check=Check.RANDOM,
        probe=r"\.eyJ[A-Za-z0-9_-]{10}",
    ),
    ContentRule(
        id="token-aws-secret",
        word=Word.API_KEYS,
        reason="secret key or session token of AWS, by the name before it",
        source="AWS command line documentation",
        probe=r"[AaSs](?i:ws_?(?:secret_?access_?key|session_?token|secret_?key)|ecretaccesskey)",
        pattern=(
            r"[AaSs](?i:ws_?(?:secret_?access_?key|session_?token|secret_?key)|ecretaccesskey)"
            r"\\{0,7}[\"']?[ \t]{0,4}(?:[:=]|=>)[ \t]{0,4}\\{0,7}[\"']?"
            r"(?P<secret>[A-Za-z0-9/+=]{40,2000})"
        ),
        scope=Scope.SPAN,
        check=Check.RANDOM,
    ),
    ContentRule(
        id="token-url",
        word=Word.PASSWORDS,
        reason="a password in the user part of a URL",
        source="RFC 3986, section 3.2.1",
        probe=r"://[^ \t\r\n/@\"'<>]+@",
        pattern=(
            r"://[^\s/:@\"'<>\\]{0,80}:"
            r"(?P<secret>[^\s/@\"'<>\\]{6,200})@[A-Za-z0-9\[_$]"
        ),
        scope=Scope.SPAN,
        check=Check.PASSWORD,
    ),
    ContentRule(
        id="token-basic",
        word=Word.PASSWORDS,
        reason="a basic authorization header with a password",
        source="RFC 7617",
        probe=r"[Bb]asic [A-Za-z0-9+/]{12}",
        pattern=r"asic (?P<secret>[A-Za-z0-9+/]{12,1000}={0,2})(?![A-Za-z0-9+/=])",
        scope=Scope.SPAN,
        check=Check.BASIC,
    ),
    ContentRule(
        id="token-bearer",
        word=Word.TOKENS,
        reason="a bearer token in a header, of whatever form",
        source="RFC 6750",
        probe=r"[Bb]earer [A-Za-z0-9._~+/-]{20}",
        pattern=r"earer (?P<secret>[A-Za-z0-9._~+/-]{20,4000}={0,2})",
        scope=Scope.SPAN,
        check=Check.RANDOM,
    ),
    ContentRule(
        id="cookie-header",
        word=Word.COOKIES,
        reason="a cookie in a header, with a value that looks drawn",
        source="RFC 6265",
        probe=r"[Cc]ookie: ?[^\r\n\"'=;]+=[A-Za-z0-9%._~+/|-]",
        pattern=(
            r"ookie: ?(?:[^\r\n\"'=;]{1,60}=[^\r\n\"'; ]{0,16}; ?){0,4}"
            r"[^\r\n\"'=;]{1,60}=(?P<secret>[A-Za-z0-9%._~+/|-]{20,4000}={0,2})"
        ),
        scope=Scope.SPAN,
        check=Check.RANDOM,
    ),
    ContentRule(
        id="cookie-jar",
        word=Word.COOKIES,
        reason="a line of a cookie jar",
        source="curl documentation, Netscape cookie file",
        probe=r"\t(?:TRUE|FALSE)\t/",
        pattern=(
            r"\t(?:TRUE|FALSE)\t/[^\t\r\n]{0,200}\t(?:TRUE|FALSE)\t[0-9.]{1,20}\t"
            r"[^\t\r\n]{1,200}\t(?P<secret>[^\t\r\n]{6,4000})"
        ),
        scope=Scope.WHOLE,
        check=Check.FILLED,
    ),
    ContentRule(
        id="cookie-json",
        word=Word.COOKIES,
        reason="cookies that a browser driver or an extension saved as JSON",
        source="Playwright, Puppeteer and Selenium documentation",
        probe=r"\"(?:cookies|httpOnly|sameSite|hostOnly)\\{0,2}\"[ \t\r\n]*:",
        pattern=(
            r"\{(?=[^{}]{0,6000}\"domain\\{0,2}\"\s{0,8}:)(?=[^{}]{0,6000}\"name\\{0,2}\"\s{0,8}:)"
            r"[^{}]{0,6000}?\"value\\{0,2}\"\s{0,8}:\s{0,8}\\{0,2}\"(?P<secret>[^\"\\\r\n]{8,4000})"
        ),
        scope=Scope.WHOLE,
        check=Check.FILLED,
    ),
)

_ASSIGNED = (
    ContentRule(
        id="assigned",
        word=Word.PASSWORDS,
        reason="a value under a name that says secret; only in configuration files",
        source="published precision of generic rules: SecretBench, CredData",
        probe=(
            r"(?i:pass(?:word|wd|phrase|code)?|pwd|secret|token|key|credentials?|auth|ident|cookie)"
            r"[a-z0-9_]{0,12}[\"']?[ \t]*(?:[:=]|=>)[ \t]*(?:[|>]|[\"']?[^ \t\r\n\"',;{}<>]{12})"
        ),
        pattern="",
        scope=Scope.CONFIGURATION,
    ),
    ContentRule(
        id="assigned-xml",
        word=Word.PASSWORDS,
        reason="an element or attribute of XML whose name says secret, with a value",
        source="Maven settings, NuGet configuration",
        probe=(
            r"(?i:pass(?:word|wd|phrase)?|secret|token|key)[0-9A-Za-z]{0,12}"
            r"(?:>|\"[ \t]+value=\")[^<>\"\r\n]{6}"
        ),
        pattern="",
        scope=Scope.CONFIGURATION,
    ),
    ContentRule(
        id="assigned-list",
        word=Word.PASSWORDS,
        reason="a value that follows its name in a list: an option, or a pair of name and value",
        source="command lines in configuration, Kubernetes manifests",
        probe=(
            r"(?i:pass(?:word|wd|phrase)?|secret|token|key|auth)[\"']?[ \t]*,?[ \t\r\n]*"
            r"(?:[\"']?value[\"']?[ \t]*:)?[ \t\r\n]*[\"']?[^ \t\r\n\"',;{}<>:=]{12}"
        ),
        pattern="",
        scope=Scope.CONFIGURATION,
    ),
)

CONTENT_RULES = (*_KEYS, *_TOKENS, *_ASSIGNED)
"""Keys, then tokens and cookies, then what counts only in configuration files."""

WIDE_LEAST = 12
"""So many letters of two or four bytes are text in UTF-16 or UTF-32, which is scanned as well."""

WIDE_RUN = r"(?:[\t\n\r -~]\x00{1,3}){11,}[\t\n\r -~]?"
