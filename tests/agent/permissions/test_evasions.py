"""Deny rules in the most permissive mode: known ways to run a program in disguise."""

import pytest

from longhold.agent.permissions import decide, examine, parse_rules

EVASIONS = r"""
touch x
/usr/bin/touch x
/usr/bin/t?uch x
/usr/bin/t[o]uch x
t\ouch x
'tou'ch x
$'\x74ouch' x
echo dG91Y2ggeA== | base64 -d | sh
echo 'touch x' | bash
echo 'touch x' | sh -s
printf 'touch x' | bash /dev/stdin
printf 'touch x' | python3
bash <<< 'touch x'
. /dev/stdin <<< 'touch x'
bash <(echo touch x)
source <(echo touch x)
eval "to""uch x"
eval $(echo touch x)
x=touch; $x y
x=tou; ${x}ch y
hash -p /usr/bin/touch foo; foo x
alias t='touch x'
shopt -s expand_aliases; alias t=touch
ln -s /usr/bin/touch t; ./t x
cp /bin/touch t && ./t x
cp $(which touch) t; ./t x
cp "$(command -v touch)" t; ./t x
env touch x
sqlite3 db '.shell touch x'
sqlite3 db '.system touch x'
sqlite3 -batch db '.shell touch x'
mapfile -C 'touch x;:' -c 1 a < f
mapfile -C'touch x;:' -c 1 a < f
readarray -C 'touch x;:' -c 1 a < f
compgen -C 'touch x' y
zip -T -TT 'touch x #' a.zip f
zip -T -TT'touch x #' a.zip f
zip -T --unzip-command='touch x #' a.zip f
env -S 'touch x'
env -S'touch x'
env -i /usr/bin/env touch x
nice -n 5 touch x
timeout 5 touch x
timeout 5 t?uch x
time touch x
command touch x
builtin command touch x
exec -a foo touch x
echo x | xargs touch
echo touch x | xargs env
echo 'touch x' | xargs -I{} sh -c '{}'
echo 'touch x' | xargs -I{} sh -c {}
echo touch | xargs -I% % x
echo 'touch x' | parallel
find . -exec touch x \;
find . -execdir touch {} +
busybox touch x
python3 -c "import os; os.system('touch x')"
python3 -c "import os; os.system('to'+'uch x')"
perl -e 'exec "touch","x"'
perl -e 'system("tou"."ch x")'
ruby -e '`touch x`'
node -e 'require("child_process").execSync("touch x")'
awk 'BEGIN{system("touch x")}'
awk 'BEGIN{"touch x" | getline}'
awk 'BEGIN{system("to" "uch x")}'
sed '1e touch x' a
vim -c '!touch x' a
git -c alias.x='!touch x' x
git -c core.pager='touch x' log
PAGER='touch x' git log
GIT_SSH_COMMAND='touch x' git fetch
tar --to-command='touch x' -xf a
tar -cf - a --checkpoint-action=exec='touch x'
ssh -o ProxyCommand='touch x' host
trap 'touch x' EXIT
PS4='$(touch x)'; set -x; :
x='$(touch y)'; : "${x@P}"
x='a[$(touch y)]'; echo $((x))
test -v 'a[$(touch x)]'
function f { touch x; }; f
f() { touch x; }; f
coproc touch x
coproc N { touch x; }
if touch x; then :; fi
case a in a) touch x;; esac
for i in touch; do $i x; done
{ touch x; }
(touch x)
touch x &
echo $(touch x)
echo `touch x`
bash -c 'touch x'
bash -c "bash -c 'touch x'"
bash -c 'tou""ch x'
bash -c "$(echo dG91Y2ggeA== | base64 -d)"
sh -c "$X"
echo "$'"; touch x #'"
watch -n1 touch x
flock f -c 'touch x'
script -c 'touch x' /dev/null
strace touch x
/lib64/ld-linux-x86-64.so.2 /usr/bin/touch x
uv run touch x
npm exec touch x
make -f - <<< 'all:; touch x'
{touch,x}
${X:-touch} y
TOUCH x
a=1 touch x
>x touch
touch>x
git rebase -x 'touch x' HEAD
git bisect run touch x
git submodule foreach 'touch x'
dd if=/bin/touch of=t
cat /bin/touch > t; chmod +x t; ./t x
cat <<E␤$(touch x)␤E
bash <<'E'␤touch x␤E
to\␤uch x
rbash -c 'touch x'
tcsh -c 'touch x'
sg root -c 'touch x'
echo 'touch x' | newgrp root
tar -cf a.tar a -I 'touch x;:'
tar -I 'sh -c "touch x"' -cf a.tar a
tar -cf a.tar a --use-compress-program 'touch x;:'
tar '-Itouch x;:' -cf a.tar a
split --filter 'touch x' a
split --filter "touch x␤'" a
rsync -e 'touch x' a:b c
ssh -o 'ProxyCommand touch x' host
ssh '-oProxyCommand touch x' host
scp -o 'ProxyCommand touch x' a host:b
git config alias.t '!touch x'; git t
make -f <(printf 'a:\n\ttouch x\n')
echo touch x | xargs -I% sh -c %
echo touch x | xargs -I % sh -c %
echo touch x | xargs -d '\n' -I% sh -c 'true; %'
echo touch x | xargs --replace=% bash -c %
cat < /usr/bin/touch > t; chmod +x t; ./t x
cd /usr; cp bin/touch /tmp/t; /tmp/t x
cd /usr/bin; cp touch /tmp/t; /tmp/t x
cd /usr/bin && cat < touch > /tmp/t
"""

ORDINARY = r"""
ls -la
git status && git diff
git commit -m "Touch up the README (and more)"
for f in *.py; do wc -l "$f"; done
FOO=$BAR make test
X="$(git rev-parse HEAD)"; echo "$X"
timeout 5 pytest -q tests/*.py
python3 script.py --flag=value
python3 -c "print(1 + 1)"
bash build.sh
cat a | python3 tool.py
awk '{print $1}' a
sed -i 's/a/b/' a
find . -name '*.py' | xargs grep -n foo
npm run build
echo "costs $5"
git commit -am "touch up the README; touch up the docs"
git commit -m"touch up the README"
git log --grep "touch up" -S "touch x"
git log -S"touch x"
git grep -n "touch x"
git log --oneline | grep "touch x"
gh pr create --title "Touch up the docs" --body "touch x is denied"
pytest -k "touch or move"
python3 -m pytest -k "touch or move"
curl -H "Touch yes" -d "touch x" http://127.0.0.1/
echo "touch x" >> notes.md
printf 'touch %s' x
rg "touch x" src
test "touch x" = "$y"
ls *.py | xargs -I% cp % backup
ls *.py | xargs -I% sh -c 'wc -l %'
find . -name '*.c' | xargs -I % gcc -c %
tar -czf a.tgz "my files/a"
make -f Makefile.new all
diff <(sort a) <(sort b)
ssh -o 'StrictHostKeyChecking no' host
cat < src/a.py > b
cd bin && ls
awk '{print $1}' <(sort a)
"""


def _lines(text):
    return [line.replace("␤", "\n") for line in text.splitlines() if line]


def _outcome(tools, places, command):
    call = examine(tools["Bash"], {"command": command}, places)
    return decide(call, parse_rules(deny=("Bash(touch:*)",)), "bypass", places).outcome


@pytest.mark.parametrize("command", _lines(EVASIONS))
def test_a_forbidden_program_does_not_run_unasked_under_another_guise(tools, places, command):
    assert _outcome(tools, places, command) != "allow"


@pytest.mark.parametrize("command", _lines(ORDINARY))
def test_a_deny_rule_leaves_other_work_alone(tools, places, command):
    assert _outcome(tools, places, command) == "allow"


def test_a_text_too_long_to_read_hides_no_command(tools, places):
    assert _outcome(tools, places, f"tar -cf a.tar a -I 'touch x; : {'a ' * 6_000}'") == "deny"
    assert _outcome(tools, places, f"tell 'do not {'touch ' * 6_000}'") == "allow"
