"""The rules that decide by path: stores, key files, environment files, caches, dependencies.

Data, to be read. Every pattern is the tail of a path, lower case; see `PathRule`. A name that
could be somebody's work is not here: content decides about it.
Source: the documentation of the programs named, spec/exclusion.md 2. Start at `PATH_RULES`.
"""

from durarepo.policy.rules import MarkRule, PathRule, Word

TEMPLATE_NAMES = (
    *("*.example", "*.sample", "*.template", "*.tmpl", "*.tpl", "*.dist", "*.default"),
    *("*.defaults", "*.d.ts", "*.schema", "*.schema.json"),
)
"""Templates that are meant to be shared; their content is still looked at."""

_BROWSERS = (
    *("google-chrome*", "chromium*", "bravesoftware", "microsoft-edge*", "vivaldi*", "opera*"),
    *("yandex-browser*", "thorium*"),
)

PATH_RULES = (
    # --- environment files ---
    PathRule(
        id="env-file",
        word=Word.ENVIRONMENT,
        reason="a file whose purpose is to set the environment",
        source="github/gitignore Node, direnv, Flask and Wrangler documentation",
        files=(
            *(".env", ".env.*", ".env-*", ".env_*", "*.env", ".envrc", ".envrc.*", ".flaskenv"),
            *("env.sh", "env.bash", "env.zsh", "env.fish", "env.ps1", "env.bat", "env.cmd"),
            *(".dev.vars", ".dev.vars.*", ".pam_environment", ".ssh/environment", ".secrets"),
        ),
        unless=TEMPLATE_NAMES,
    ),
    # --- private keys and containers ---
    PathRule(
        id="key-ssh",
        word=Word.PRIVATE_KEYS,
        reason="an SSH private key by its name",
        source="ssh-keygen(1), sshd(8)",
        files=(
            *("id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_ecdsa_sk", "id_ed25519_sk"),
            *("id_xmss", "id_mldsa*", ".ssh/id_*", ".ssh/identity", "ssh_host_*_key"),
        ),
        unless=("*.pub", "*.md", "*.txt"),
    ),
    PathRule(
        id="key-container",
        word=Word.PRIVATE_KEYS,
        reason="a container of keys or passwords that only its name tells",
        source="RFC 7292, keytool(1), KeePass, PuTTY, Kerberos and Apple documentation",
        files=(
            *("*.p12", "*.pfx", "*.pkcs12", "*.jks", "*.jceks", "*.bks", "*.bcfks", "*.keystore"),
            *("*.kdbx", "*.kdb", "*.psafe3", "*.ppk", "*.keytab", "*.keychain", "*.keychain-db"),
            *("*.agekey", "*.pvk", "*.snk", "secring.gpg", "secring.pgp", "wallet.dat"),
        ),
        folders=("*.agilekeychain", "*.opvault"),
    ),
    PathRule(
        id="key-gnupg",
        word=Word.PRIVATE_KEYS,
        reason="private keys of GnuPG, and revocations that anybody could publish",
        source="gpg-agent(1)",
        folders=("private-keys-v1.d", "openpgp-revocs.d"),
    ),
    PathRule(
        id="key-application",
        word=Word.PRIVATE_KEYS,
        reason="the master key of an application",
        source="Rails, Ethereum, Solana, age and sops documentation",
        files=(
            *("master.key", "config/credentials/*.key", "utc--*", ".config/solana/*.json"),
            *("sops/age/keys.txt", ".config/age/*.txt", "*.secret_key", ".secret_key*"),
            *(".webui_secret_key", ".jwt_secret", ".secret_key_base", "secret_key_base"),
        ),
        folders=(".ethereum/keystore", ".eth-keystore"),
    ),
    # --- credential stores ---
    PathRule(
        id="store-login",
        word=Word.PASSWORDS,
        reason="a file of logins that programs read by this name",
        source="netrc(5), libpq, MySQL, curl, wget, Samba, mail clients, htpasswd(1), shadow(5)",
        files=(
            *(".netrc", "_netrc", ".authinfo", ".authinfo.gpg", ".pgpass", "pgpass.conf"),
            *(".my.cnf", ".mylogin.cnf", ".rediscli_auth", ".wgetrc", ".curlrc", ".htpasswd"),
            *(".htdigest", ".smbcredentials", ".credentials", ".cifs", ".vncpasswd", ".vnc/passwd"),
            *(".msmtprc", ".fetchmailrc", ".mbsyncrc", ".offlineimaprc", ".getmailrc"),
            *("etc/shadow", "etc/gshadow", ".purple/accounts.xml", "weechat/sec.conf"),
            *("filezilla/sitemanager.xml", "filezilla/recentservers.xml", "kwallet/*.kwl"),
            *("credentials-config.json", "data-sources-local.xml", ".passwd-s3fs"),
        ),
        folders=(".password-store", "share/keyrings", "share/kwalletd", ".subversion/auth"),
    ),
    PathRule(
        id="store-vcs",
        word=Word.CREDENTIALS,
        reason="logins of version control and its hosts",
        source="gitcredentials(7), GitHub, GitLab, Hub and Gitea command line documentation",
        files=(
            *(".git-credentials", "git/credentials", "gh/hosts.yml", "glab-cli/config.yml"),
            *(".config/hub", "tea/config.yml", ".config/git-credential*", ".gitcookies"),
            *("github-copilot/hosts.json", "github-copilot/apps.json"),
        ),
        folders=(".git-credential-cache", ".cache/git/credential"),
    ),
    PathRule(
        id="store-cloud",
        word=Word.CREDENTIALS,
        reason="logins of cloud command lines",
        source="AWS, Google Cloud, Azure, Oracle, IBM, DigitalOcean, Hetzner, Scaleway",
        files=(
            *(".aws/credentials", "gcloud/application_default_credentials.json", ".boto", ".s3cfg"),
            *(
                "gcloud/credentials.db",
                "gcloud/access_tokens.db",
                "gcloud/adc.json",
                ".cf/config.json",
            ),
            *(".azure/accesstokens.json", ".azure/msal_token_cache*", ".azure/service_principal*"),
            *(".azure/msal_http_cache*", "doctl/config.yaml", "hcloud/cli.toml", "scw/config.yaml"),
            *(
                ".oci/config",
                ".oci/*.pem",
                ".bluemix/config.json",
                ".config/linode-cli",
                ".databrickscfg",
            ),
            *(".snowflake/connections.toml", ".snowsql/config", ".aliyun/config.json"),
            *(".fly/config.yml", ".netlify/config.json", ".config/netlify/config.json"),
            *("com.vercel.cli/auth.json", ".vercel/auth.json", ".railway/config.json"),
            *(".wrangler/config/default.toml", "stripe/config.toml", ".supabase/access-token"),
            *(
                "ngrok/ngrok.yml",
                ".ngrok2/ngrok.yml",
                ".cloudflared/*.json",
                ".cloudflared/cert.pem",
            ),
        ),
        folders=(
            *(".aws/sso/cache", ".aws/cli/cache", ".aws/login", "gcloud/legacy_credentials"),
            *("gcloud/credentials", ".oci/sessions"),
        ),
    ),
    PathRule(
        id="store-infrastructure",
        word=Word.CREDENTIALS,
        reason="logins of infrastructure tools",
        source="Terraform, Vault, Pulumi, rclone, Ansible, Tailscale and Consul documentation",
        files=(
            *(".vault-token", ".consul-token", ".nomad-token", ".terraformrc", "terraform.rc"),
            *("credentials.tfrc.json", ".pulumi/credentials.json", "rclone/rclone.conf"),
            *(".rclone.conf", ".vault_pass*", ".vault-pass*", "vault_pass.txt", ".ansible_vault*"),
            *("tailscaled.state", ".chef/*.pem", ".chef/credentials", "containers/auth.json"),
            *(".config/op/config", ".config/restic/password*", "k3s.yaml", "kubeadm.conf"),
        ),
        folders=(".config/op/sessions", ".config/sops/age", ".kube/cache"),
    ),
    PathRule(
        id="store-package",
        word=Word.TOKENS,
        reason="tokens of package registries",
        source="PyPI, Cargo, RubyGems, Composer, Poetry, Hex, Kaggle, Hugging Face documentation",
        files=(
            *(".pypirc", ".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials"),
            *("gem/credentials", "pypoetry/auth.toml", ".composer/auth.json", "composer/auth.json"),
            *(".hex/hex.config", ".kaggle/kaggle.json", "kaggle.json", ".huggingface/token"),
            *("huggingface/token", "huggingface/stored_tokens", ".bundle/credentials"),
            *(".sbt/.credentials", ".ivy2/.credentials", ".bintray/.credentials"),
        ),
        folders=(".continuum/tokens",),
    ),
    PathRule(
        id="store-agent",
        word=Word.CREDENTIALS,
        reason="the login of an agent runtime",
        source="documentation and source of the runtimes named in the patterns",
        files=(
            *(".claude/.credentials.json", "claude/.credentials.json", ".codex/auth.json"),
            *("codex/auth.json", ".gemini/oauth_creds.json", ".gemini/google_accounts.json"),
            *(".gemini/mcp-oauth-tokens*.json", ".qwen/oauth_creds.json", "opencode/auth.json"),
            *("opencode/mcp-auth.json", ".hermes/auth.json", ".openclaw/secrets.json"),
            *(".clawdbot/secrets.json", "agent/auth.json", "auth-profiles.json", ".n8n/config"),
            *("goose/secrets.yaml", ".ollama/id_ed25519", ".cline/data/secrets.json"),
            *(".openhands/secrets.json", ".openhands/.jwt_secret", ".letta/credentials*"),
            *(".config/amp/secrets.json", "amp/secrets.json", ".factory/auth.json"),
            *("crush/auth.json", ".kimi/credentials*", "aichat/.env", ".continue/.env"),
            *(".copilot/config.json", "amazon-q/data.sqlite3"),
            *("io.datasette.llm/keys.json", ".qodo/auth.key"),
        ),
        folders=(
            *(".openclaw/credentials", ".clawdbot/credentials", ".moltbot/credentials"),
            *(".hermes/credentials", ".mcp-auth", ".codex/credentials"),
        ),
    ),
    PathRule(
        id="store-name",
        word=Word.CREDENTIALS,
        reason="a name that is only given to a store of secrets",
        source="Google API quick starts, Streamlit, Docker, Home Assistant documentation",
        files=(
            *("credentials.json", "token.json", "client_secret.json"),
            *(
                "client_secrets.json",
                "client_secret_*.json",
                "token.pickle",
                "credentials.yml.enc.key",
            ),
            *("secrets.yaml", "secrets.yml", "secrets.json", "secrets.toml", "secrets.ini"),
            *("credentials.csv", "credentials.yaml", "credentials.yml", "credentials.toml"),
            *("service-account.json", "service_account.json", "serviceaccount*.json"),
            *(
                "service-account-*.json",
                "service_account_*.json",
                "application_default_credentials.json",
            ),
            *("passwords.txt", "passwords.csv", "password.txt", "passwords.json", "passwords.kdbx"),
            *("passwords.xlsx", "passwords.ods", "logins.csv", "recovery-codes.txt"),
            *("recovery_codes.txt", "github-recovery-codes.txt", "backup-codes.txt"),
        ),
    ),
    # --- cookies and browsers ---
    PathRule(
        id="cookie-file",
        word=Word.COOKIES,
        reason="cookies or a saved login session",
        source="curl, Chromium, Firefox and Playwright documentation",
        files=(
            *("cookies.txt", "cookies.sqlite", "cookies.sqlite.bak", "cookies", "cookies.db"),
            *("cookies.binarycookies", "*.binarycookies", "cookie.txt", "cookies.json"),
            *("cookies.pkl", "cookies.pickle", "cookiejar", "cookiejar.txt", ".cookies"),
            *("storage_state.json", "storagestate.json", "storage-state.json", "auth_state.json"),
            *("storage_state*.json", "storagestate*.json", "authstate.json"),
        ),
        folders=(".auth", "playwright/.auth"),
    ),
    PathRule(
        id="browser-store",
        word=Word.PASSWORDS,
        reason="passwords, keys or sessions of a browser",
        source="Chromium and Firefox profile documentation",
        files=(
            *("login data", "login data for account", "web data", "logins.json", "key3.db"),
            *("key4.db", "signons.sqlite", "logins-backup.json", "sessionstore.jsonlz4"),
            *("local state", "trusted vault", "affiliation database"),
        ),
        folders=("sessionstore-backups",),
    ),
    PathRule(
        id="browser-profile",
        word=Word.COOKIES,
        reason="a browser profile; its stores hold sessions",
        source="Chromium user data directory, Firefox profiles",
        folders=(
            *(f".config/{name}" for name in _BROWSERS),
            *(".mozilla/firefox", ".mozilla", ".librewolf", ".waterfox"),
            *("application support/google/chrome", "application support/firefox"),
            *("application support/chromium", "application support/bravesoftware"),
            *("application support/microsoft edge", "google/chrome/user data"),
            *("snap/firefox", "snap/chromium", ".var/app/org.mozilla.firefox"),
            *(".var/app/org.chromium.chromium", ".var/app/com.google.chrome"),
            *("local storage/leveldb", "session storage"),
        ),
    ),
    # --- caches ---
    PathRule(
        id="cache-folder",
        word=Word.CACHES,
        reason="a cache by a name that is only given to caches",
        source="XDG base directories, github/gitignore, Chromium and Electron",
        folders=(
            *(".cache", "__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".pytype"),
            *(".pyre", ".hypothesis", ".nyc_output", ".sass-cache", ".parcel-cache", ".turbo"),
            *(".rpt2_cache*", ".ccache", ".sccache", ".dart_tool", ".terragrunt-cache"),
            *("zig-cache", ".zig-cache", "_cacache", ".next/cache", ".nx/cache", ".angular/cache"),
            *(".vite", ".yarn/cache", ".bun/install/cache", ".composer/cache", ".webpack"),
            *(".aider.tags.cache.v*", ".claude/statsig", ".claude/plugins/cache"),
            *(".ollama/models/blobs", ".triton/cache", ".nv/computecache", ".fontconfig"),
        ),
        files=(".eslintcache", ".stylelintcache", ".dmypy.json", ".tsbuildinfo"),
    ),
    PathRule(
        id="cache-program",
        word=Word.CACHES,
        reason="a cache of a program built on Chromium or of macOS, as the program writes its name",
        source="Electron and Chromium user data directories, macOS file system guide",
        exact=True,
        folders=(
            *("Code Cache", "GPUCache", "CachedData", "Cache_Data", "DawnCache", "ShaderCache"),
            *("DawnGraphiteCache", "DawnWebGPUCache", "GrShaderCache", "GraphiteDawnCache"),
            *("Service Worker/CacheStorage", "CachedExtensionVSIXs", "CachedProfilesData"),
            *("CachedConfigurations", "CachedExtensions", "Library/Caches"),
            *(".config/*/Cache", ".config/*/*/Cache", "Application Support/*/Cache"),
        ),
    ),
    # --- virtual environments ---
    PathRule(
        id="venv-folder",
        word=Word.ENVIRONMENTS,
        reason="an environment by a name that only tools give",
        source="github/gitignore Python, tox, nox, pixi, nodeenv and pyenv documentation",
        folders=(
            *(".venv", ".tox", ".nox", ".pixi", ".nodeenv", ".virtualenvs", ".pyenv/versions"),
            *("pypoetry/virtualenvs", ".rbenv/versions", ".nvm/versions", ".direnv"),
        ),
    ),
    # --- dependency folders ---
    PathRule(
        id="dependency-folder",
        word=Word.DEPENDENCIES,
        reason="installed packages by a name that only package managers give",
        source="github/gitignore and the documentation of the package managers",
        folders=(
            *("node_modules", "bower_components", "jspm_packages", "web_modules", "site-packages"),
            *("dist-packages", "__pypackages__", ".eggs", "elm-stuff", ".terraform"),
            *(".gradle", ".pnpm-store", ".yarn/unplugged", ".stack-work", "dist-newstyle"),
            *(".npm/_npx", ".cargo/registry", ".cargo/git", ".rustup/toolchains", ".m2/repository"),
            *(".ivy2/cache", ".ivy2/local", ".nuget/packages", "go/pkg/mod", "vendor/bundle"),
            *(".hex/packages", ".pub-cache", ".cocoapods"),
            *(".julia/packages", ".julia/artifacts", ".julia/compiled", "renv/library"),
            *(".cabal/packages", ".cabal/store", ".bundle/ruby", ".gem/ruby", ".conda/pkgs"),
            *("miniconda3/pkgs", "anaconda3/pkgs", "miniforge3/pkgs", "deno/npm", ".luarocks"),
        ),
    ),
    PathRule(
        id="dependency-apple",
        word=Word.DEPENDENCIES,
        reason="installed packages of CocoaPods and Carthage, as the tools write the names",
        source="github/gitignore Swift and Objective-C",
        exact=True,
        folders=("Pods", "Carthage/Build", "Carthage/Checkouts"),
    ),
)
"""Asked in this order; the first that fits is named."""

CACHEDIR_SIGNATURE = b"Signature: 8a477f597d28d172789f06886806bc55"
"""The first bytes of a valid CACHEDIR.TAG."""

MARK_RULES = (
    MarkRule(
        id="mark-pyvenv",
        word=Word.ENVIRONMENTS,
        reason="a Python environment, by its pyvenv.cfg",
        source="PEP 405; virtualenv before version 20",
        any_inside=("pyvenv.cfg", "bin/activate_this.py"),
    ),
    MarkRule(
        id="mark-conda",
        word=Word.ENVIRONMENTS,
        reason="a conda environment, by its history",
        source="conda documentation",
        any_inside=("conda-meta/history",),
    ),
    MarkRule(
        id="mark-cachedir",
        word=Word.CACHES,
        reason="a cache, by a valid CACHEDIR.TAG",
        source="Cache Directory Tagging Specification",
        any_inside=("CACHEDIR.TAG",),
        signature=CACHEDIR_SIGNATURE,
    ),
    MarkRule(
        id="mark-target",
        word=Word.DEPENDENCIES,
        reason="built and fetched by Cargo, Maven or Leiningen, beside its project file",
        source="github/gitignore Rust, Maven, Leiningen",
        names=("target",),
        beside=("Cargo.toml", "pom.xml", "project.clj", "build.sbt"),
    ),
    MarkRule(
        id="mark-vendor",
        word=Word.DEPENDENCIES,
        reason="packages copied in by Go, Composer or Bundler, by their own list",
        source="Go modules reference, Composer documentation",
        names=("vendor",),
        any_inside=("modules.txt", "autoload.php", "bundle/ruby"),
    ),
    MarkRule(
        id="mark-mix",
        word=Word.DEPENDENCIES,
        reason="fetched and built by Mix or Rebar, beside its project file",
        source="Mix documentation",
        names=("deps", "_build"),
        beside=("mix.exs", "rebar.config"),
    ),
    MarkRule(
        id="mark-chromium",
        word=Word.COOKIES,
        reason="a Chromium profile outside its usual place, by what lies in it",
        source="Chromium user data directory",
        inside=("Local State", "Default"),
    ),
    MarkRule(
        id="mark-firefox",
        word=Word.COOKIES,
        reason="a Firefox profile outside its usual place, by what lies in it",
        source="Firefox profile documentation",
        inside=("prefs.js", "cookies.sqlite"),
    ),
)
"""Asked of every folder that no path rule has left out."""
