"""The read-only shell check: what it proves, and the evasions that it refuses."""

import os
import re
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longhold.agent.permissions.readonly import is_read_only_command

PROVED = r"""
ls
ls -la src
cat README.md
cat 'a file with spaces.txt'
head -n 20 a.py
tail -5 log.txt
wc -l src/*.py
grep -rn "def main" src
grep -E 'a|b' file.txt
grep foo *.py
rg -n --hidden pattern src
rg -tpy -g '!tests' thing
find . -name '*.py' -type f
find src -mtime -1 -maxdepth 2
find . \( -name a -o -name b \) -print
sort -u names.txt
sort -k2,2n -t, table.csv
cat a | sort | uniq -c | sort -rn | head
ls | wc -l
git status
git status --short
git --no-pager log --oneline -5
git log --since=yesterday --stat
git diff HEAD~1 -- src
git show HEAD:README.md
git blame -L 1,10 a.py
git branch -a
git rev-parse --show-toplevel
git ls-files
git remote -v
git stash list
git config --get user.name
git grep -n foo
git grep -n foo ':!docs/*.md'
sed -n '1,40p' a.py
sed -n 5p a.py
stat a.py
file -b a.bin
du -sh src
df -h
date +%F
date -u
pwd
echo hello
printf '%s\n' hi
echo "costs $"
grep "a{2}" b
echo '{'
ls 2>&1
jq '.[] | {a: .b, c}' package.json
strings -n 8 a.bin
md5sum a
grep --include=*.py -rn foo src
which python3
command -v rg
python3 --version
diff -u a b
cmp a b
tree -L 2 src
test -f a.py
[ -d src ]
! grep -q foo a
ls 2>/dev/null
ls > /dev/null 2>&1
cat < input.txt
ls; pwd
ls && pwd || true
ls # and a comment
jq .name package.json
sha256sum a
uniq a
hostname
echo '$(rm x)'
echo 'a > b'
echo "a; rm b"
grep 'foo|rm' a
"""

REFUSED = r"""
rm a
rm -rf /
touch a
mkdir a
cp a b
mv a b
ln -s a b
chmod +x a
tee a
ls | tee a
ls > out
ls >> out
ls >| out
ls &> out
ls &>> out
ls >& out
ls 2> err
ls 1>out
ls <> out
ls > /dev/sda
ls > /dev/tcp/host/80
cat < /dev/tcp/host/80
cat < /dev/udp/host/53
ls > /dev/null > out
ls; rm a
ls && rm a
ls || rm a
ls | rm a
ls & rm a
ls &
ls |& tee a
(rm a)
{ rm a; }
{ ls; }
(ls)
if true; then rm a; fi
for f in *; do rm "$f"; done
while true; do ls; done
case x in x) rm a;; esac
f() { rm a; }; f
function ls { rm a; }
:(){ :|:& };:
echo $(rm a)
echo `rm a`
echo "$(rm a)"
echo "`rm a`"
echo ${x:-$(rm a)}
echo ${x@P}
echo $((a[$(rm a)]))
echo $[a[0]]
echo $x
cat $FILE
cat "$FILE"
$cmd
${cmd} a
"$cmd" a
$(echo rm) a
`echo rm` a
cat <(rm a)
ls > >(rm a)
diff <(ls) <(ls)
cat <<EOF
cat <<-EOF
bash <<< 'rm a'
echo $'\x72m'
$'rm' a
$'\162m' a
$"ls"
r''m a
r\m a
'rm' a
"rm" a
\rm a
'ls'
/bin/ls
./ls
/tmp/evil/ls
~/bin/ls
PATH=/tmp/evil ls
LD_PRELOAD=/tmp/evil.so ls
GIT_PAGER='rm a' git log
GIT_SSH_COMMAND=evil git status
BASH_ENV=evil ls
PAGER=evil git log
X=1
X=1 ls
a[0]=1 ls
X+=1 ls
export PATH=/tmp
alias ls=rm
unalias ls
declare x=1
read x
let x=1
eval ls
exec ls
source a
. a
trap 'rm a' EXIT
set -e
unset x
cd /
pushd x
sudo ls
env ls
env -i ls
nohup ls
nice ls
time ls
timeout 5 ls
xargs rm
ls | xargs rm
ls | xargs cat
ls | xargs -I{} sh -c 'rm {}'
find . -exec rm {} \;
find . -exec cat {} +
find . -execdir rm {} \;
find . -ok rm {} \;
find . -okdir rm {} \;
find . -delete
find . -name x -delete
find . -fprint out
find . -fprint0 out
find . -fprintf out %p
find . -fls out
find . "-delete"
find . -'delete'
find . -d\elete
find . -D exec
find . -files0-from list
find * -name x
find {.,-delete}
sort -o out a
sort -oout a
sort a -o out
sort --output=out a
sort --output out a
sort --outp=out a
sort --o=out a
sort -ro out a
sort -u -o a a
sort --compress-program=evil a
sort --compress-prog evil a
sort -T /tmp a
sort *
sort -- -o out
uniq payload 1&>/dev/null
uniq payload 1&>>/dev/null
git branch 1&>/dev/null
uniq a 99999999999>/dev/null
uniq a 1000>/dev/null
echo evil >&２
echo evil >&1234
echo evil 2>&１
uniq "\"/../"{pad/pad/in,./../outside/pwned}""
cat "\""{a,b}""
cat '"'{a,b}'"'
jq -nf p.jq
jq -f p.jq a
jq --from-file p.jq a
jq -n env.KEY
jq -n '$ENV'
jq 'import "config" as $c {search:"/dir"}; $c' a
jq 'include "m"; .' a
jq -L /dir . a
jq --slurpfile x /etc/passwd -n '$x'
jq --rawfile x /etc/passwd -n '$x'
jq .* a
strings @opts
strings -a @opts
grep -R x .
grep -nR x .
grep --dereference-recursive x .
grep -f list a
diff -r a b
diff -rN a b
find -L . -name x
find . -follow
du -L .
ls -LR
rg -L x
md5sum -c list
sha256sum --check list
git config --list
git config -l
git config --get-regexp .
git config --get http.extraheader
git log --format=%GG
git log --format=%G?
test * 'a[$(rm x)]'
[ * 'a[$(rm x)]' ]
printf a* 'b[$(rm x)]'
uniq a out
uniq - out
uniq -c a out
uniq a*
date -s tomorrow
date --set=tomorrow
date 01010000
date -us tomorrow
hostname evil
hostname -F a
sed -i s/a/b/ a
sed s/a/b/ a
sed -n 'w out' a
sed -n '1w out' a
sed -n '1e rm a' a
sed -n 's/a/rm b/e' a
sed -n '1,5p' -i a
sed -n '1,5p' --in-place a
sed -n -f script a
sed -n '1p;w out' a
sed --expression=p a
awk '{print}' a
awk 'BEGIN{system("rm a")}'
awk '{print > "out"}' a
gawk -i inplace '{print}' a
perl -e 'unlink "a"'
perl -pi -e s/a/b/ a
python -c 'import os'
python3 a.py
python3 --version a.py
python3 -V a.py
node -e 1
ruby -e 1
bash -c ls
bash --version -c 'rm a'
sh a.sh
make
make --version all
git
git st
git commit -m x
git add .
git push
git pull
git fetch
git checkout a
git stash
git stash drop
git -c core.pager=evil log
git -c alias.st='!rm a' st
git -c core.fsmonitor=evil status
git -C /tmp/evil status
git --git-dir=/tmp/evil status
git --exec-path=/tmp/evil status
git --work-tree=/ status
git -p log
git --paginate log
git --config-env=a=b status
git diff --output=out
git diff --output out
git diff --outpu=out
git log --output=out
git log -p --output=out
git show --output=out
git diff --ext-diff
git diff --textconv
git diff --no-index /etc/passwd a
git log --show-signature
git grep --untracked . ':(top).netrc'
git grep foo ':(top)'
git grep foo :/
git ls-files -o ':(top,glob)**'
git show :0:README.md
git grep -Oevil foo
git grep -nOevil foo
git grep --open-files-in-pager=evil foo
git grep -O foo
git branch new
git branch -D old
git branch -d old
git branch -m a b
git branch --list x
git branch -f a b
git branch --set-upstream-to=a
git branch --edit-description
git branch --unset-upstream
git tag v1
git tag -d v1
git tag -l v1
git remote add a b
git remote update
git remote -v update
git remote set-url a b
git reflog expire --all
git reflog delete x
git config user.name x
git config --get-urlmatch a b
git config alias.x '!rm a'
git config --unset a
git config --edit
git config --get a --unset a
git config --file=x --list
git ls-remote
git ls-remote --upload-pack=evil x
git archive HEAD
git archive --remote=x --exec=evil HEAD
git cat-file --textconv HEAD:a
git cat-file --filters HEAD:a
git rev-parse --parseopt
git blame --contents a b
git shortlog --output=x
git bisect run evil
git rebase -x evil
git submodule foreach evil
git worktree add x
git difftool
git help -w log
git update-index --refresh
git log --format=%x --output-directory=x
rg --pre evil foo
rg --pre=evil foo
rg --pre-glob '*' foo
rg --hostname-bin=evil foo
rg -z foo
rg --search-zip foo
rg -nz foo
tree -o out
tree -ao out
tree -Lo 1 out
tree --output out
tree -R -H . -o x
file -C -m magic
file -f list
file -m magic a
file --compile
wc --files0-from=list
wc --files0-from list
du --files0-from=list
diff --paginate a b
diff -l a b
printf -v PATH x
printf '%n' x
printf '%ln' x
printf '%s%n' a 'b[$(rm c)]'
printf '%5n' x
test -v 'a[$(rm x)]'
[ -v 'a[$(rm x)]' ]
[ -R x ]
[[ -v x ]]
[[ a == b ]]
command ls
command -p ls
command rm a
command -v
builtin ls
less a
more a
man ls
vim a
vi -c ':!rm a' a
ed a
nano a
top
watch ls
ssh host ls
scp a b
curl http://example.org
curl -o a http://example.org
wget http://example.org
nc host 80
tar xf a
tar cf - a
tar --to-command=evil -xf a
zip a b
unzip a
gzip a
dd if=a of=b
truncate -s 0 a
install a b
rsync a b
patch -p0
xxd -r a b
base64 -d a
openssl enc -in a -out b
split a
csplit a 1
npm test
npm --version
cargo --version
pip list
docker ps
kubectl get pods
kill 1
killall x
arch -x86_64 rm a
ps aux
printenv
env
history -c
jq -n env
jq -n '$ENV.KEY'
ulimit -n 1
umask 0
ls {a,b}
cat {/etc/passwd,a}
{ls,-la}
ls ~root
ls ~+
ls 'unterminated
ls "unterminated
ls `unterminated
ls $(unterminated
ls \
ls )
ls (
;;
&&
>
> out
< in
2>&1
!
# only a comment
"""

SPELLED = [
    "",
    " ",
    "\n",
    "ls\nrm a",
    "ls\r\nrm a",
    "ls\rrm a",
    "ls\x00rm a",
    "ls\x0brm a",
    "ls\x0crm a",
    "ls\x1b[2K",
    "ls\u00a0-la",
    "ls\u2028rm a",
    "ls\u200b",
    "l\u202es",
    "\ufeffls",
    "ls \\\n-la; rm a",
    "l\\\ns",
    'echo "$\\\n(rm a)"',
    "echo $\\\n(rm a)",
    "echo `\\\nrm a`",
    "cat <<'E'\nx\nE\nrm a",
    "cat <<E\n$(rm a)\nE",
    "ls \\\n; rm a",
    "ls #\nrm a",
    "echo 'a\nb' > c",
    "ls\n\n\nrm a",
    "ls &\\\n& rm a",
    "git log --format='%h' \\\n --output=x",
    "ls" + " " * 10 + ";" + "rm a",
    "echo " + "$(" * 50 + "rm a" + ")" * 50,
    "ls " + "a" * 300_000,
    "sort\t-o\tout\ta",
    "find . -exe\\\nc rm {} +",
]

HARMLESS = re.compile(r"\s*(#.*|!)?\s*")
"""Refused because nothing is in it; beside a command that is no reason."""

CASES = [line for line in REFUSED.splitlines() if line] + SPELLED


@pytest.mark.parametrize("text", [line for line in PROVED.splitlines() if line])
def test_a_command_that_changes_nothing_is_proved(text):
    assert is_read_only_command(text)


@pytest.mark.parametrize("text", CASES)
def test_a_way_around_the_read_only_shell_is_refused(text):
    assert not is_read_only_command(text)


def test_there_are_enough_ways_around():
    assert len(set(CASES)) == len(CASES) >= 200


@given(
    st.sampled_from([case for case in CASES if len(case) < 100 and not HARMLESS.fullmatch(case)]),
    st.sampled_from(PROVED.splitlines()[1:]),
)
def test_a_harmless_command_beside_it_proves_nothing(bad, good):
    assert not is_read_only_command(f"{good}\n{bad}")


@given(st.text(alphabet="ls catrm-o'\"\\$(){}`<>|&;\n #*=!", max_size=30))
def test_what_is_proved_leaves_a_real_shell_nothing_to_write(tmp_path_factory, text):
    if not is_read_only_command(text):
        return
    place = tmp_path_factory.mktemp("proved")
    (place / "a").write_text("a\n")
    subprocess.run(
        ["bash", "-c", text],
        cwd=place,
        env={"PATH": os.environ["PATH"], "HOME": str(place)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=20,
    )
    assert [path.name for path in place.iterdir()] == ["a"]
    assert (place / "a").read_text() == "a\n"


@pytest.mark.parametrize("unit", ["${", "$(", "`", '"$(', ">", "\n- ", "{a,", "((", "<("])
def test_deep_and_long_commands_are_refused_in_time(unit):
    assert not is_read_only_command(f"cat {unit * 20_000}")


@pytest.mark.parametrize(
    "command", ["uniq €|cat pwned", "uniq in€\\ pwned", "echo €\\;touch pwned"]
)
def test_no_locale_swallows_what_parts_words(tmp_path, command):
    assert not is_read_only_command(command)
    made = tmp_path / "zh_CN.GBK"
    words = ["localedef", "-c", "-f", "GBK", "-i", "zh_CN", str(made)]
    if shutil.which("localedef") is None or subprocess.run(words, capture_output=True).returncode:
        pytest.skip("this locale cannot be made here")
    for name in ("€|cat", "in€\\"):
        (tmp_path / name).write_text("x")
    subprocess.run(
        ["bash", "-c", command],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "LOCPATH": str(tmp_path), "LC_ALL": made.name},
        capture_output=True,
    )
    assert (tmp_path / "pwned").exists()  # so bash does read it that way


@pytest.mark.parametrize("command", ["uniq in -- -c", "uniq -- in --count", "uniq in -c"])
def test_an_option_behind_an_operand_can_be_the_file_that_is_written(tmp_path, command):
    assert not is_read_only_command(command)
    (tmp_path / "in").write_text("x")
    strict = {} if "--" in command.split() else {"POSIXLY_CORRECT": "1"}
    variables = {"PATH": os.environ["PATH"], **strict}
    subprocess.run(["bash", "-c", command], cwd=tmp_path, env=variables)
    assert len(list(tmp_path.iterdir())) == 2


def test_what_follows_the_end_of_a_stream_is_a_word():
    assert not is_read_only_command('uniq in >&-""')
    done = subprocess.run(["bash", "-c", "f() { exit $#; }; f in >&-''"])
    assert done.returncode == 2
