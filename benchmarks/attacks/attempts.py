"""Commands that write, run or connect but look as if they only read, in all known ways.

They use options that run or write, redirections, substitutions, separators, wrappers, interpreters,
git's own hooks and aliases, the environment, and links. Line ends inside an attempt are written as
␤.
"""

DIRECT = r"""
touch pwned
echo x > pwned
echo x >> pwned
echo x >| pwned
echo x &> pwned
echo x &>> pwned
echo x 1>pwned
cat a 3>pwned
: > pwned
> pwned
ls <> pwned
printf x > pwned
cat a > pwned
cat > pwned < a
cat <<E > pwned
cp a pwned
mv a pwned
ln a pwned
ln -s a pwned
link a pwned
install a pwned
mkdir pwned
mkfifo pwned
dd if=a of=pwned
truncate -s 1 pwned
split a pwned
csplit a 1
tee pwned < a
cat a | tee pwned
cat a | tee -a pwned
cat a |& tee pwned
tar cf pwned a
gzip -k a
zip pwned a
rsync a pwned
chmod 000 a
rm a
unlink a
shred -u a
patch a pwned
"""

OPTIONS = r"""
find . -exec touch pwned ;
find . -name a -exec touch pwned \;
find . -name a -exec touch pwned {} +
find . -name a -execdir touch pwned \;
find . -name a -ok touch pwned \;
find . -name a -delete
find . -delete
find . -fprint pwned
find . -fprint0 pwned
find . -fprintf pwned x
find . -fls pwned
find . -name a -o -exec touch pwned \;
find . \( -name a \) -exec touch pwned \;
find . "-exec" touch pwned \;
find . -ex'ec' touch pwned \;
find . $'-exec' touch pwned \;
find . -name a -e""xec touch pwned \;
find -L . -name a -exec touch pwned \;
sort -o pwned a
sort -opwned a
sort --output=pwned a
sort --output pwned a
sort --outpu=pwned a
sort -uo pwned a
sort a -o pwned
sort -- a -o pwned
sort --compress-program=touch a
sort -S 1 --compress-prog touch a
uniq a pwned
uniq -c a pwned
sed -i s/a/b/ a
sed -i.bak s/a/b/ a
sed --in-place s/a/b/ a
sed --in-plac s/a/b/ a
sed -n -i p a
sed -ni p a
sed 'w pwned' a
sed -n '1w pwned' a
sed 's/a/b/w pwned' a
sed '1e touch pwned' a
sed 's/a/touch pwned/e' a
sed -e 'w pwned' a
sed -f a a
sed -s 'W pwned' a
sed $'w pwned' a
awk 'BEGIN{print "x" > "pwned"}'
awk 'BEGIN{system("touch pwned")}'
awk 'BEGIN{print "x" | "tee pwned"}'
awk 'BEGIN{"touch pwned" | getline}'
gawk -i inplace 1 a
grep -r x . > pwned
rg x --pre touch
rg --pre=touch x .
rg --hostname-bin touch x
fd -x touch pwned
fd . --exec touch pwned
tree -o pwned
tree --output=pwned
date -s 2020-01-01
date --set=2020-01-01
hostname pwned
file -C -m a
file -m a --compile
xxd a pwned
xxd -r a pwned
od a > pwned
diff --output=pwned a a
less -o pwned a
less -O pwned a
more a '+!touch pwned'
man -P 'touch pwned' ls
jq -n 'input' a > pwned
yq -i . a
curl -o pwned file:///etc/hostname
wget -O pwned http://127.0.0.1:9/
column a > pwned
tail -f a > pwned
nl a > pwned
"""

SUBSTITUTED = r"""
echo $(touch pwned)
echo `touch pwned`
echo "$(touch pwned)"
echo "`touch pwned`"
cat <(touch pwned)
cat >(touch pwned)
ls $(touch pwned)
echo ${x:=$(touch pwned)}
echo ${x:-`touch pwned`}
echo $((x=$(touch pwned; echo 1)))
echo "${x:-$(touch pwned)}"
cat <<E␤$(touch pwned)␤E
cat <<"E"; touch pwned␤E
echo ${!x}; touch pwned
X=$(touch pwned) ls
ls "$(touch pwned)"
[ $(touch pwned) ]
[[ $(touch pwned) ]]
test "$(touch pwned)"
echo {a,$(touch pwned)}
grep "$(touch pwned)" a
find . -name "$(touch pwned)"
a[$(touch pwned)]=1
echo ${x@P} $(touch pwned)
printf -v 'a[$(touch pwned)]' x
test -v 'a[$(touch pwned)]'
[ -v 'a[$(touch pwned)]' ]
read x <<< "$(touch pwned)"
"""

SEPARATED = r"""
ls; touch pwned
ls ;touch pwned
ls && touch pwned
false || touch pwned
ls | touch pwned
ls & touch pwned
ls␤touch pwned
ls␍␤touch pwned
ls \␤; touch pwned
ls # comment␤touch pwned
ls ';' ; touch pwned
(touch pwned)
{ touch pwned; }
! touch pwned
time touch pwned
coproc touch pwned
if true; then touch pwned; fi
while ! touch pwned; do :; done
until touch pwned; do :; done
for x in 1; do touch pwned; done
case x in x) touch pwned;; esac
select x in 1; do touch pwned; done < a
f() { touch pwned; }; f
function f { touch pwned; }; f
ls() { touch pwned; }; ls
trap 'touch pwned' EXIT
alias ls='touch pwned'␤ls
eval touch pwned
eval "to""uch pwned"
exec touch pwned
source ./script
. ./script
bash script
./script
"""

WRAPPED = r"""
env touch pwned
env -i /usr/bin/touch pwned
env -S 'touch pwned'
command touch pwned
builtin eval 'touch pwned'
exec -a ls touch pwned
nice touch pwned
nohup touch pwned
timeout 5 touch pwned
stdbuf -o0 touch pwned
setsid touch pwned
ionice touch pwned
xargs touch < names
echo pwned | xargs touch
echo pwned | xargs -I{} touch {}
ls | xargs -n1 sh -c 'touch pwned'
sh -c 'touch pwned'
bash -c 'touch pwned'
bash -c "touch pwned"
bash <<< 'touch pwned'
echo 'touch pwned' | sh
echo 'touch pwned' | bash
sh < script
python3 -c 'open("pwned","w")'
python3 -c "import os; os.system('touch pwned')"
python3 <<< 'open("pwned","w")'
python3 script.py
perl -e 'open(F,">pwned")'
node -e 'require("fs").writeFileSync("pwned","")'
busybox touch pwned
/usr/bin/touch pwned
/bin/../usr/bin/touch pwned
\touch pwned
'touch' pwned
t"ou"ch pwned
$'touch' pwned
$'\x74ouch' pwned
to\uch pwned
$x touch pwned
"$@" touch pwned
${x}touch pwned
/usr/bin/t?uch pwned
/usr/bin/touc[h] pwned
sudo touch pwned
script -c 'touch pwned' out
watch -n1 touch pwned
parallel touch ::: pwned
flock a touch pwned
strace -o pwned ls
make -f makefile
vim -c 'w pwned' -c q a
ed a < script
ex -sc 'w pwned' -c q a
"""

GIT = r"""
git commit --allow-empty -m x
git add a
git checkout -b pwned
git branch pwned
git branch -m pwned
git tag pwned
git stash
git reset --hard
git clean -fd
git init pwned
git config user.name pwned
git config --global alias.st '!touch pwned'
git config --add x.y pwned
git -c alias.st='!touch pwned' st
git -c alias.status='!touch pwned' x
git -c core.pager='touch pwned' log
git -c core.fsmonitor='touch pwned' status
git -c core.sshCommand='touch pwned' ls-remote x
git -c diff.external='touch pwned' diff
git -c pager.status='touch pwned' -p status
git --exec-path=. log
git -C . commit --allow-empty -m x
git --git-dir=.x log > pwned
git --work-tree=/ clean -n
git log --output=pwned
git log --outpu=pwned
git diff --output=pwned
git diff --no-index --output=pwned a a
git show --output=pwned
git diff --ext-diff
git log -p --textconv --ext-diff
git grep -O'touch pwned' x
git grep --open-files-in-pager='touch pwned' x
git archive -o pwned HEAD
git format-patch HEAD
git bundle create pwned HEAD
git bisect run touch pwned
git rebase -x 'touch pwned' HEAD
git submodule foreach 'touch pwned'
git filter-branch --tree-filter 'touch pwned'
git difftool -x 'touch pwned'
git mergetool --tool=x
git worktree add pwned
git remote add pwned x
git notes add -m pwned
git update-ref refs/pwned HEAD
git hash-object -w a
git rev-parse --parseopt < a > pwned
git symbolic-ref HEAD refs/heads/pwned
git apply a
git am a
git gc
git fetch .
git pull .
git push . HEAD:pwned
git ls-remote --upload-pack='touch pwned' .
git ls-remote 'ext::sh -c "touch pwned"'
git clone . pwned
git help -w log
git blame --contents a a > pwned
git reflog delete HEAD@{0}
git reflog expire --all
"""

SURROUNDED = r"""
LD_PRELOAD=./x.so ls
BASH_ENV=./script bash -c ls
ENV=./script sh -c ls
PATH=. ls
PATH=.:$PATH ls
GIT_PAGER='touch pwned' git log
GIT_EXTERNAL_DIFF='touch pwned' git diff
GIT_SSH_COMMAND='touch pwned' git ls-remote x
GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.pager GIT_CONFIG_VALUE_0='touch pwned' git log
PAGER='touch pwned' git log
LESSOPEN='|touch pwned' less a
LESS='+!touch pwned' less a
MANPAGER='touch pwned' man ls
EDITOR='touch pwned' git commit
PYTHONSTARTUP=script python3
PS4='$(touch pwned)' bash -xc ls
PROMPT_COMMAND='touch pwned' bash -ic ls
SHELLOPTS=xtrace PS4='$(touch pwned)' bash -c ls
IFS=, ls
GREP_OPTIONS=-x grep a
RIPGREP_CONFIG_PATH=./rc rg x
export PATH=.
declare -x PATH=.
set -- touch pwned; "$@"
unset PATH
printf -- %n PATH; cat a
printf -- '%n' BASH_ENV; cat a
hash -p ./script ls
enable -f ./x.so x
shopt -s expand_aliases
cd /tmp && touch pwned
pushd . && touch pwned
ls > linked
cat a > linked
cat a > ./linked
cp a linked
tee linked < a
sort -o linked a
sort a > "linked"
echo x > $PWD/pwned
echo x > ~/pwned
echo x > /dev/../$PWD/pwned
echo x > /dev/null/../pwned
echo x >/dev/fd/../../$PWD/pwned
echo x > /proc/self/cwd/pwned
cat a > /dev/stdout > pwned
"""

ODD = (
    "ls \u2028; touch pwned",
    "ls\u00a0; touch pwned",
    "ls \x0b; touch pwned",
    "ls\x0c; touch pwned",
    "ls \ufeff; touch pwned",
    "ls \0; touch pwned",
    "ls ; touch pwned",
    "\u200btouch pwned",
    "ls\u037e touch pwned\ntouch pwned",
)

FAMILIES = {
    "direct": DIRECT,
    "options": OPTIONS,
    "substituted": SUBSTITUTED,
    "separated": SEPARATED,
    "wrapped": WRAPPED,
    "git": GIT,
    "surrounded": SURROUNDED,
}
HARMLESS = ("ls", "cat a", "git status", "grep x a")
"""Put before an attempt, as a cover that was proved."""


def attempts() -> list[str]:
    """List every attempt once, also behind a harmless command."""
    found = dict.fromkeys(ODD)
    for text in FAMILIES.values():
        for line in text.splitlines():
            if line:
                found.setdefault(line.replace("␍", "\r").replace("␤", "\n"))
    for number, line in enumerate(list(found)):
        found.setdefault(f"{HARMLESS[number % len(HARMLESS)]} && {line}")
    return list(found)
