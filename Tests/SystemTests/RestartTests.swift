// Restarts as clients see them: systemd holds the socket, the daemon stops and starts, and every call that could be sent is
// answered.

import Foundation
import Testing

extension EndToEnd {
  @Suite("Restart") struct RestartTests {
    /// Acts as systemd and runs the clients: vehiclectl, and raw clients that never repeat a call.
    private static let script = """
      import json, os, signal, socket, subprocess, sys, threading, time
      place, restarts, daemon, client = sys.argv[1], int(sys.argv[2]), sys.argv[3:-1], sys.argv[-1]
      listener = socket.socket(socket.AF_UNIX)
      listener.bind(place)
      listener.listen(128)
      over, failures, counts = threading.Event(), [], []

      def begin():
          pid = os.fork()
          if pid == 0:
              os.dup2(listener.fileno(), 3)
              os.set_inheritable(3, True)
              os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))
              os.execv(daemon[0], daemon)
          return pid

      def verb():
          count = 0
          while not over.is_set():
              done = subprocess.run([client, "--socket", place, "--timeout", "20", "status"], capture_output=True, text=True)
              count += 1
              if done.returncode:
                  failures.append(f"vehiclectl: {done.returncode} {done.stderr.strip()}")
          counts.append(count)

      def call(connection, number):
          # A call that could not be sent does not count.
          try:
              connection.sendall(b'{"method":"io.vehicled.Status"}\\0')
          except BrokenPipeError:
              return None
          reply = b""
          while not reply.endswith(b"\\0"):
              try:
                  data = connection.recv(1 << 16)
              except ConnectionResetError:
                  data = b""
              if not data:
                  failures.append(f"call {number} of its connection: no reply after {len(reply)} bytes")
                  return None
              reply += data
          return reply

      def raw(each):
          count = 0
          while not over.is_set():
              with socket.socket(socket.AF_UNIX) as connection:
                  connection.settimeout(20)
                  connection.connect(place)
                  for number in range(each):
                      if not call(connection, number):
                          break
                      count += 1
                      if over.is_set():
                          break
          counts.append(count)

      busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count())]
      pid = begin()
      callers = [threading.Thread(target=verb) for _ in range(4)] + [threading.Thread(target=raw, args=[each]) for each in (1, 1, 100, 1 << 30)]
      for caller in callers:
          caller.start()
      for number in range(restarts):
          time.sleep(0.3 + number % 7 / 20)
          os.kill(pid, signal.SIGTERM)
          status = os.waitpid(pid, 0)[1]
          if status:
              failures.append(f"the daemon ends with {status}")
          pid = begin()
      over.set()
      for caller in callers:
          caller.join()
      os.kill(pid, signal.SIGTERM)
      os.waitpid(pid, 0)
      for process in busy:
          process.kill()
      print(json.dumps({"calls": sum(counts), "failures": failures}), flush=True)
      """

    @Test func `no call of eight clients is lost while all CPUs are busy`() throws {
      let rig = try Rig()
      try rig.write("[device.ev]\nkind = \"obd\"\nlink = \"tcp:127.0.0.1:1\"\n")
      let restarts = ProcessInfo.processInfo.environment["VEHICLED_RESTARTS"].flatMap { Int($0) } ?? 10
      let program = try Program(
        "/usr/bin/env",
        [
          "python3", "-c", Self.script, rig.socket, "\(restarts)", "\(Rig.programs)/vehicled", "--config", rig.configuration,
          "--state",
          "\(rig.directory)/state", "\(Rig.programs)/vehiclectl",
        ],
        in: rig.directory)
      #expect(program.status(within: 30 + 5 * Double(restarts)) == 0, "\(program.stderr.suffix(2000))")
      let report = try #require(JSONSerialization.jsonObject(with: Data(program.stdout.utf8)) as? [String: Any])
      #expect(report["failures"] as? [String] == [])
      #expect(report["calls"] as? Int ?? 0 > restarts)
    }
  }
}
