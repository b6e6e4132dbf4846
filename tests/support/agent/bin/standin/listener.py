"""The listener. ``scenario.json`` in the runner root steers what is not the service's to decide:

    {"starts": [{..}, {..}]}     one scenario for each start; the last goes on
    "start_delay": S             before anything else            "version_delay": S, "version_exit": N    for --version
    "exit": N | "signal": N, "at": "start" | "connected" | "listening" | "after_job"     ends there in that way
    "stderr": [lines]            printed before that end
    "ignore": [signal names]     deaf to these                   "stop": true     SIGSTOPs itself when listening
    "orphans": N                 leaves N processes behind when listening (ignoring signals, own sessions)
    "output": N                  writes N lines when listening
    "conflict_pause": S, "connect_pause": S, "poll_pause": S     instead of the agent's 30 s
    "keep_files": true           an ephemeral end that does not delete them
"""
import json
import os
import signal
import sys
import time

from . import files, look, net
from .worker import orphans


def stamp():
    return time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime())


def say(text):
    os.write(1, (text + "\n").encode())


def complain(text):
    os.write(2, (text + "\n").encode())


def version_of(bin_dir):
    own = look.grab(os.path.join(bin_dir, "version"))
    if own:
        return own.strip()
    with open(os.path.join(bin_dir, "Runner.Listener.deps.json")) as f:
        for key in json.load(f)["libraries"]:
            name, _, version = key.partition("/")
            if name == "Runner.Listener":
                return version
    return "0.0.0"


def truth(text):
    return (text or "").lower() in ("1", "true", "$true")


class Vanished(Exception):
    pass


class Refused(Exception):
    def __init__(self, status, obj):
        super().__init__("%s" % ((obj or {}).get("message") or status))
        self.status = status
        self.obj = obj or {}


class Listener:
    def __init__(self, path, argv):
        self.bin = os.path.dirname(path)
        self.root = os.path.dirname(self.bin)
        self.argv = argv
        self.version = version_of(self.bin)
        self.agent = "GitHubActionsRunner-linux-x64/%s" % self.version
        self.problems = []
        self.stopping = False
        self.wake_r, self.wake_w = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self.worker = None
        self.job_done = False
        self.scenario = {}

    # steering
    def read_scenario(self):
        try:
            with open(os.path.join(self.root, "scenario.json")) as f:
                self.scenario = json.load(f)
        except FileNotFoundError:
            return
        counter = os.path.join(look.REPORTS, "starts")
        n = int(look.grab(counter) or "0")
        with open(counter, "w") as f:
            f.write(str(n + 1))
        if "starts" in self.scenario:
            turns = self.scenario["starts"]
            self.scenario = turns[min(n, len(turns) - 1)]

    def read_scenario_for_version(self):
        try:
            with open(os.path.join(self.root, "scenario.json")) as f:
                scenario = json.load(f)
        except OSError:
            return
        time.sleep(scenario.get("version_delay", 0))
        if scenario.get("version_exit"):
            sys.exit(scenario["version_exit"])

    def at(self, where):
        s = self.scenario
        if s.get("at", "listening") != where or ("exit" not in s and "signal" not in s):
            return
        for line in s.get("stderr", []):
            complain(line)
        if "signal" in s:
            os.kill(os.getpid(), s["signal"])
            time.sleep(60)
        sys.exit(s["exit"])

    # signals
    def on_stop(self, number, frame):
        if not self.stopping:
            say("Exiting...")
        self.stopping = True
        if number == signal.SIGTERM:
            signal.alarm(30)
        os.write(self.wake_w, b"x")

    def arm(self):
        for s in (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
            # like .NET: a signal that was ignored at exec stays ignored
            if s.name in self.scenario.get("ignore", []):
                signal.signal(s, signal.SIG_IGN)
            elif signal.getsignal(s) != signal.SIG_IGN:
                signal.signal(s, self.on_stop)

    # start
    def check_folders(self):
        folder = self.root
        while True:
            try:
                os.listdir(folder)
            except OSError:
                complain("Permission to read the directory contents is required for '%s' and each directory up the hierarchy." % self.root)
                sys.exit(1)
            if folder == "/":
                break
            folder = os.path.dirname(folder)
        try:
            os.makedirs(os.path.join(self.root, "_diag"), exist_ok=True)
            with open(os.path.join(self.root, "_diag", "Runner_%s-utc.log" % time.strftime("%Y%m%d-%H%M%S", time.gmtime())), "a") as f:
                f.write("listener %s\n" % self.version)
        except OSError as why:
            complain("An error occurred: Access to the path '%s' is denied." % why.filename)
            sys.exit(1)

    def load(self):
        if not os.path.exists(os.path.join(self.root, ".runner")) and not os.path.exists(os.path.join(self.root, ".runner_migrated")):
            complain("An error occurred: Runner is not configured.")
            self.report()
            sys.exit(1)
        try:
            self.settings, self.credentials, self.key = files.read_all(self.root, self.problems)
        except files.Bad as why:
            self.problems.append(str(why))
            self.report()
            complain("An error occurred: %s" % why)
            sys.exit(1)
        self.report()
        work = os.path.join(self.root, self.settings["workfolder"])
        try:
            os.makedirs(work, exist_ok=True)
            probe = os.path.join(work, ".probe-%d" % os.getpid())
            open(probe, "w").close()
            os.unlink(probe)
        except OSError:
            complain("An error occurred: Access to the path '%s' is denied." % work)
            sys.exit(1)

    def report(self):
        me = self.me
        me["problems"] = self.problems
        me["settings"] = getattr(self, "settings", None)
        look.write("agent-%d.json" % os.getpid(), me)

    # service
    def bearer(self):
        token, error = net.token(self.key, self.credentials, self.agent)
        if error == "invalid_client":
            raise Vanished()
        if token is None:
            raise net.NetError("the token request failed: %s" % error)
        self.token = token

    def call(self, method, url, body=None, wake=None, timeout=100):
        headers = {"User-Agent": self.agent, "Authorization": "Bearer " + self.token}
        if body is not None:
            headers["Content-Type"] = "application/json; charset=utf-8"
        status, obj = net.request(method, url, headers, body, wake, timeout)
        if status >= 400:
            raise Refused(status, obj)
        return status, obj

    def v2(self):
        return self.settings.get("usev2flow", False)

    def base(self):
        if self.v2():
            return self.settings["serverurlv2"]
        return "%s_apis/distributedtask/pools/%d/" % (self.settings["serverurl"].rstrip("/") + "/", self.settings["poolid"])

    def open_session(self):
        body = {"sessionId": "00000000-0000-0000-0000-000000000000", "ownerName": "%s (PID: %d)" % (os.uname().nodename, os.getpid()),
                "agent": {"id": self.settings["agentid"], "name": self.settings["agentname"], "version": self.version,
                          "osDescription": "stand-in"}}
        _, obj = self.call("POST", self.base() + ("session" if self.v2() else "sessions"), body)
        self.session = obj["sessionId"]

    def connect(self):
        """A session, by the rules of the agent's start-up; exits when there will never be one."""
        conflicts, told = 0, False
        while not self.stopping:
            pause = self.scenario.get("connect_pause", 1)
            try:
                self.bearer()
                say("\n√ Connected to GitHub\n")
                self.at("connected")
                self.open_session()
                if told:
                    say("%s: Runner reconnected." % stamp())
                return True
            except Vanished:
                complain("Failed to create a session. The runner registration has been deleted from the server, please re-configure. "
                         "Runner registrations are automatically deleted for runners that have not connected to the service recently.")
                sys.exit(1)
            except Refused as why:
                if why.status == 409:
                    complain("A session for this runner already exists.")
                    conflicts += 1
                    if conflicts >= 8:
                        complain("Stop retry on SessionConflictException after retried for 240 seconds.")
                        sys.exit(5)
                    pause = self.scenario.get("conflict_pause", 0.2)
                elif why.status == 403 and why.obj.get("errorCode") == 1:
                    complain("An error occurred: %s" % why)
                    sys.exit(7 if truth(os.environ.get("ACTIONS_RUNNER_RETURN_VERSION_DEPRECATED_EXIT_CODE")) else 1)
                elif why.status in (401, 403, 404):
                    complain("An error occurred: %s" % why)
                    sys.exit(1)
                elif not told:
                    complain("%s: Runner connect error: %s. Retrying until reconnected." % (stamp(), why))
                    told = True
            except net.NetError as why:
                if not told:
                    complain("%s: Runner connect error: %s. Retrying until reconnected." % (stamp(), why))
                    told = True
            self.pause(pause)
        return False

    def pause(self, seconds):
        end = time.monotonic() + seconds
        while not self.stopping and time.monotonic() < end:
            time.sleep(min(0.02, seconds))

    def close_session(self):
        try:
            self.call("DELETE", self.base() + ("session" if self.v2() else "sessions/" + self.session), timeout=30)
        except (Refused, net.NetError):
            pass

    def poll(self):
        q = "sessionId=%s&status=Online&runnerVersion=%s&os=Linux&architecture=X64&disableUpdate=%s" % (
            self.session, self.version, str(self.settings.get("disableupdate", False)).lower())
        return self.call("GET", self.base() + ("message?" if self.v2() else "messages?") + q, wake=self.wake_r)[1]

    def run(self):
        self.at("start")
        if not self.connect():
            return 0
        say("Current runner version: '%s'" % self.version)
        say("%s: Listening for Jobs" % stamp())
        self.when_listening()
        errors = 0
        while not self.stopping:
            try:
                found = self.poll()
                errors = 0
            except net.Interrupted:
                break
            except Refused as why:
                if why.status in (401, 404):
                    code = self.recover(why)
                    if code is not None:
                        return code
                    continue
                errors += 1
            except net.NetError:
                errors += 1
            if errors >= 10:
                complain("An error occurred: polling failed too often")
                return 2
            if errors:
                self.pause(self.scenario.get("poll_pause", 0.05))
                continue
            if found:
                code = self.handle(found)
                if code is not None:
                    return code
        self.close_session()
        return 0

    def recover(self, why):
        """The poll was refused: session expired, or the registration is gone."""
        try:
            self.bearer()
            self.open_session()
            return None
        except (Vanished, Refused) as gone:
            if isinstance(gone, Refused) and gone.status not in (401, 404):
                return 1
            complain("The runner no longer exists on the server. Cleaning up local configuration.")
            files.remove_identity(self.root)
            say("√ Removed .credentials")
            say("√ Removed .runner")
            return 0

    def when_listening(self):
        self.at("listening")
        if self.scenario.get("orphans"):
            orphans(self.scenario["orphans"], {"seconds": 600, "ignore": True, "own_session": True})
        for n in range(self.scenario.get("output", 0)):
            say("line %d of the agent's output" % n)
        if self.scenario.get("stop"):
            os.kill(os.getpid(), signal.SIGSTOP)

    def handle(self, found):
        body = json.loads(found["body"])
        kind = found["messageType"]
        if kind == "RunnerJobRequest":
            return self.job(body)
        if kind == "AgentRefresh":
            return self.update(body)
        complain("unknown message %s" % kind)
        return None

    # job
    def job(self, body):
        run = body["run_service_url"]
        ident = body["runner_request_id"]
        once = self.settings.get("ephemeral", False)
        try:
            _, got = self.call("POST", run + "/acquirejob", {"jobMessageId": ident, "runnerOS": "Linux"})
        except (Refused, net.NetError):
            # withdrawn: an ephemeral agent ends without having run anything
            if once:
                return self.end_of_life()
            return None
        name = got["jobDisplayName"]
        say("%s: Running job: %s" % (stamp(), name))
        result = self.run_worker({"id": ident, "spec": got["spec"], "listener": os.getpid()}, run, ident)
        say("%s: Job %s completed with result: %s" % (stamp(), name, result))
        try:
            self.call("POST", run + "/completejob", {"jobMessageId": ident, "conclusion": result})
        except (Refused, net.NetError):
            pass
        self.at("after_job")
        if self.stopping:
            return None
        if truth(os.environ.get("ACTIONS_RUNNER_RETURN_JOB_RESULT_FOR_HOSTED")):
            return {"Succeeded": 100, "Failed": 102, "Canceled": 103}.get(result, 105)
        if once:
            self.job_done = True
            return self.end_of_life()
        return None

    def run_worker(self, request, run, ident):
        import subprocess  # late: it takes long to load, and most lives have no job
        from_worker, to_listener = os.pipe()
        from_listener, to_worker = os.pipe()
        path = os.path.join(self.bin, "Runner.Worker")
        worker = subprocess.Popen([path, "spawnclient", str(to_listener), str(from_listener)], pass_fds=(to_listener, from_listener),
                                  stdin=subprocess.DEVNULL)
        os.close(to_listener)
        os.close(from_listener)
        os.write(to_worker, json.dumps(request).encode() + b"\n")
        told, renewed = False, time.monotonic()
        while worker.poll() is None:
            if self.stopping and not told:
                told = True
                try:
                    os.write(to_worker, b"shutdown\n")
                except OSError:
                    pass
            if time.monotonic() - renewed > 60:
                renewed = time.monotonic()
                try:
                    self.call("POST", run + "/renewjob", {"jobMessageId": ident})
                except (Refused, net.NetError):
                    pass
            time.sleep(0.005)
        os.close(to_worker)
        os.close(from_worker)
        return {100: "Succeeded", 102: "Failed", 103: "Canceled"}.get(worker.returncode, "Failed")

    def end_of_life(self):
        self.close_session()
        if not self.scenario.get("keep_files"):
            files.remove_identity(self.root)
            say("√ Removed .credentials")
            say("√ Removed .runner")
        return 0

    # self-update
    def update(self, body):
        import subprocess
        target = body["targetVersion"]
        say("Runner update in progress, do not shutdown runner.")
        say("Downloading %s runner" % target)
        new = os.path.join(self.root, "bin." + target)
        subprocess.run(["cp", "-a", self.bin + "/.", new], check=True)
        deps = os.path.join(new, "Runner.Listener.deps.json")
        with open(deps) as f:
            text = f.read()
        with open(deps, "w") as f:
            f.write(text.replace("/" + self.version + '"', "/" + target + '"'))
        say("Waiting for current job finish running.")
        say("Generate and execute update script.")
        try:
            os.unlink("update.finished")
        except FileNotFoundError:
            pass
        work = os.path.join(self.root, self.settings["workfolder"])
        script = os.path.join(work, "_update.sh")
        move = "rm -rf bin" if body.get("broken") else "mv bin 'bin.%s' && ln -s 'bin.%s' bin" % (self.version, target)
        finish = "" if body.get("no_marker") else "touch '%s/update.finished'" % os.getcwd()
        with open(script, "w") as f:
            f.write("while [ -e /proc/%d ]; do sleep 0.05; done\nsleep %s\ncd '%s'\n%s\n%s\n" %
                    (os.getpid(), body.get("pause", 0.1), self.root, move, finish))
        subprocess.Popen(["bash", script], stdin=subprocess.DEVNULL)
        say("Runner will exit shortly for update, should be back online within 10 seconds.")
        self.close_session()
        say("Runner update process finished.")
        return 4 if self.settings.get("ephemeral") else 3


def main(path, argv):
    signal.signal(signal.SIGALRM, lambda n, f: os._exit(143))
    me = Listener(path, argv)
    if len(argv) > 1 and argv[1] == "--version":
        me.read_scenario_for_version()
        say(me.version)
        sys.exit(0)
    me.me = look.myself(argv)
    files.dotenv(me.root)
    me.read_scenario()
    me.arm()
    for key in [k for k in os.environ if k.upper().startswith("ACTIONS_RUNNER_INPUT_")]:
        del os.environ[key]
    if argv[1:2] != ["run"]:
        complain("usage: Runner.Listener run")
        sys.exit(1)
    if me.scenario.get("start_delay"):
        me.pause(me.scenario["start_delay"])
    me.check_folders()
    me.load()
    sys.exit(me.run())
