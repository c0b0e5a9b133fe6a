// The daemon as a process: a single instance, signals, sockets, malicious clients and faulty adapters.

import CLinux
import Foundation
import Testing

extension EndToEnd {
  @Suite("The daemon") struct DaemonTests {
    @Test func `a second daemon fails and names the first`() throws {
      let rig = try Rig()
      let (daemon, _) = try rig.ev()
      let second = try Program(
        "\(Rig.programs)/vehicled", ["--config", rig.configuration, "--socket", rig.socket, "--state", "\(rig.directory)/state"],
        in: rig.directory)
      #expect(second.status(within: 5) == 1)
      #expect(second.stderr.contains("in use by another vehicled (pid \(daemon.pid))"))
      #expect(rig.vehiclectl("version").status == 0)
    }

    @Test func `the socket is reclaimed after SIGKILL`() throws {
      let rig = try Rig()
      let (daemon, _) = try rig.ev()
      #expect(daemon.end(SIGKILL) == -SIGKILL)
      #expect(rig.vehiclectl("status").status == 3)
      let next = try rig.daemon()
      #expect(wait { rig.get("rpm") != nil })
      #expect(next.isRunning)
    }

    @Test func `the daemon stops within two seconds and removes its socket`() throws {
      let rig = try Rig()
      let (daemon, _) = try rig.ev()
      #expect(wait { rig.get("rpm") != nil })
      daemon.signal(SIGTERM)
      #expect(daemon.status(within: 2) == 0)
      #expect(!FileManager.default.fileExists(atPath: rig.socket))
      #expect(rig.vehiclectl("status").status == 3)
    }

    @Test func `the daemon does not start with an invalid configuration`() throws {
      let rig = try Rig()
      try rig.write("[device.ev]\nkind = \"obd\"\nlink = \"tcp:127.0.0.1:1\"\nrat = 20\n")
      let daemon = try Program(
        "\(Rig.programs)/vehicled", ["--config", rig.configuration, "--socket", rig.socket], in: rig.directory)
      #expect(daemon.status(within: 5) == 2)
      #expect(daemon.stderr.contains("vehicled.toml:4:1"))
      #expect(daemon.stderr.contains("rate"))
      #expect(!FileManager.default.fileExists(atPath: rig.socket))
      let check = try Program("\(Rig.programs)/vehicled", ["--config", rig.configuration, "--check-config"], in: rig.directory)
      #expect(check.status(within: 5) == 2)
    }

    @Test func `a reload affects only changed devices`() throws {
      let rig = try Rig()
      let (daemon, simulator) = try rig.ev()
      #expect(wait { rig.get("rpm") != nil })
      let link = simulator.stdout.split(separator: "\n")[0]
      let polls = { Int(rig.get("ev.polls") ?? "") ?? -1 }
      let before = polls()
      let first = "[device.ev]\nkind = \"obd\"\nlink = \"\(link)\"\n"
      try rig.write(first + "[device.van]\nkind = \"obd\"\nlink = \"tcp:127.0.0.1:1\"\n")
      let outcome = rig.vehiclectl("reload")
      #expect(outcome.status == 0)
      #expect(outcome.output.contains("van"))
      #expect(polls() >= before)
      try rig.write("nonsense")
      #expect(rig.vehiclectl("reload").status == 1)
      daemon.signal(SIGHUP)
      #expect(wait { daemon.stderr.contains("keeping the running one") })
      #expect(rig.vehiclectl("status", "van").status == 0)
      try rig.write(first)
      daemon.signal(SIGHUP)
      #expect(wait { rig.vehiclectl("status", "van").status == 4 })
      #expect(wait { polls() > before })
    }

    @Test func `a reconfigured device can reopen its port`() throws {
      let rig = try Rig()
      let simulator = try rig.simulator(on: "pty")
      let device = "[device.ev]\nkind = \"obd\"\nlink = \"\(simulator.link)\"\n"
      try rig.write(device)
      let daemon = try rig.daemon()
      #expect(wait { rig.get("rpm") != nil })
      try rig.write(device + "rate = 10\n")
      #expect(rig.vehiclectl("reload").status == 0)
      #expect(wait { rig.get("rpm") != nil })
      try rig.write(device.replacingOccurrences(of: "device.ev", with: "device.car"))
      #expect(rig.vehiclectl("reload").status == 0)
      #expect(wait { rig.get("car.rpm") != nil })
      #expect(!daemon.stderr.contains("another program"))
    }

    @Test func `systemd is notified of each state`() throws {
      let rig = try Rig()
      let path = "\(rig.directory)/notify"
      let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
      defer { close(descriptor) }
      var address = sockaddr_un()
      address.sun_family = sa_family_t(AF_UNIX)
      withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
      let bound = withUnsafePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) }
      }
      try #require(bound == 0)
      try rig.write("[device.ev]\nkind = \"obd\"\nlink = \"tcp:127.0.0.1:1\"\n")
      // Without WATCHDOG_PID the watchdog applies to every process that reads it.
      let daemon = try rig.daemon(environment: ["NOTIFY_SOCKET": path, "WATCHDOG_USEC": "300000"])
      daemon.signal(SIGHUP)
      // The socket holds ten messages; like systemd, read them as they come.
      var messages = ""
      var buffer = [UInt8](repeating: 0, count: 4096)
      let listen = {
        while case let count = recv(descriptor, &buffer, buffer.count, Int32(MSG_DONTWAIT)), count > 0 {
          messages += String(decoding: buffer[..<count], as: UTF8.self) + "\n"
        }
      }
      let isWatched = wait {
        listen()
        return messages.components(separatedBy: "READY=1").count > 2 && messages.components(separatedBy: "WATCHDOG=1").count > 3
      }
      #expect(isWatched && daemon.end() == 0)
      listen()
      let first = try #require(messages.range(of: "READY=1"))
      let reloading = try #require(messages.range(of: "RELOADING=1\nMONOTONIC_USEC="))
      let stopping = try #require(messages.range(of: "STOPPING=1"))
      #expect(first.lowerBound < reloading.lowerBound && reloading.lowerBound < stopping.lowerBound)
      #expect(messages.components(separatedBy: "READY=1").count == 3)
      #expect(messages.contains("STATUS="))
    }

    @Test func `the reason for a closed link is logged once, not on every attempt`() throws {
      let rig = try Rig()
      try rig.write("[device.ev]\nkind = \"obd\"\nlink = \"tcp:127.0.0.1:1\"\n")
      let daemon = try rig.daemon()
      /// The time of the last attempt.
      func attempt() -> Int? {
        let devices = try? rig.vehiclectl("status", "--json").json()["devices"] as? [[String: Any]]
        return (devices?.first?["links"] as? [[String: Any]])?.first?["since"] as? Int
      }
      for _ in 0..<2 {
        let last = try #require(attempt())
        #expect(wait { attempt().map { $0 > last } == true })
      }
      #expect(daemon.stderr.components(separatedBy: "connection refused").count == 2)
    }

    @Test func `a file that is not a socket is not replaced`() throws {
      let rig = try Rig()
      try rig.write("")
      try rig.write("precious", to: rig.socket)
      let daemon = try Program(
        "\(Rig.programs)/vehicled", ["--config", rig.configuration, "--socket", rig.socket], in: rig.directory)
      #expect(daemon.status(within: 5) == 1)
      #expect(daemon.stderr.contains("not a socket"))
      #expect(try String(contentsOfFile: rig.socket, encoding: .utf8) == "precious")
    }

    @Test func `a recording with impossible times does not crash the daemon`() throws {
      let rig = try Rig()
      let header = #"{"format":1,"kind":"obd","device":"ev","date":"2026-11-21T00:00:00Z"}"#
      let lines = [Int64.max, -1, Int64.min].map { #"{"t":\#($0),"link":"main","dir":"rx","hex":"41"}"# }
      try rig.write(([header] + lines).joined(separator: "\n") + "\n", to: "\(rig.directory)/odd.ndjson")
      try rig.write("[device.ev]\nkind = \"obd\"\nlink = \"replay:\(rig.directory)/odd.ndjson?speed=0.001\"\n")
      let daemon = try rig.daemon()
      usleep(300_000)
      #expect(daemon.isRunning && rig.vehiclectl("status").status == 0)
    }

    @Test func `a recording ends when its device is removed`() throws {
      let rig = try Rig()
      try rig.write("[device.ev]\nkind = \"obd\"\nlink = \"tcp:127.0.0.1:1\"\n")
      let daemon = try rig.daemon()
      let client = try RawClient(rig.socket)
      client.send(#"{"method":"io.vehicled.Record","parameters":{"device":"ev"},"more":true}"#)
      #expect(client.next() != nil)
      try rig.write("")
      #expect(rig.vehiclectl("reload").status == 0)
      var last = client.next()
      while let reply = last, reply["error"] == nil { last = client.next() }
      #expect(last?["error"] as? String == "io.vehicled.DeviceError")
      #expect(daemon.isRunning)
    }

    @Test(.disabled(if: dlsym(nil, "__tsan_init") != nil, "ThreadSanitizer wakes its programs up"))
    func `the daemon sleeps when nothing is due`() throws {
      let rig = try Rig()
      try rig.write("")
      let daemon = try rig.daemon()
      // Work that is left from the start may take a while on a busy machine.
      var before = try daemon.switches()
      let sleeps = try (0..<4).contains { _ in
        usleep(2_500_000)
        defer { before = (try? daemon.switches()) ?? [:] }
        return try daemon.switches() == before
      }
      #expect(sleeps)
    }

    @Test func `a socket from systemd is used and not removed`() throws {
      let rig = try Rig()
      try rig.write("[device.ev]\nkind = \"obd\"\nlink = \"tcp:127.0.0.1:1\"\n")
      let script = """
        import os, socket, sys
        s = socket.socket(socket.AF_UNIX)
        s.bind(sys.argv[1]); s.listen(8)
        os.dup2(s.fileno(), 3); os.set_inheritable(3, True)
        os.environ["LISTEN_FDS"] = "1"; os.environ["LISTEN_PID"] = str(os.getpid())
        os.execv(sys.argv[2], ["vehicled"] + sys.argv[3:])
        """
      let daemon = try Program(
        "/usr/bin/env",
        [
          "python3", "-c", script, rig.socket, "\(Rig.programs)/vehicled", "--config", rig.configuration, "--state",
          "\(rig.directory)/state",
        ],
        in: rig.directory)
      #expect(wait { rig.vehiclectl("version").status == 0 }, "\(daemon.stderr)")
      #expect(daemon.end() == 0)
      #expect(FileManager.default.fileExists(atPath: rig.socket))
    }

    /// systemd would start the program again for each client that still waits.
    @Test(arguments: ["vehicled", "vehicled-history"])
    func `with an invalid configuration, clients that wait at a socket from systemd are refused`(name: String) throws {
      let rig = try Rig()
      try rig.write("[device.\n")
      try expectRefusal(rig, name)
    }

    @Test(arguments: ["vehicled", "vehicled-history"])
    func `with invalid options, clients that wait at a socket from systemd are refused`(name: String) throws {
      let rig = try Rig()
      try rig.write("")
      try expectRefusal(rig, name, ["--no-such-option"], status: 64)
    }

    @Test func `clients that wait for a damaged history are refused`() throws {
      let rig = try Rig()
      try rig.write("")
      let state = "\(rig.directory)/state"
      try FileManager.default.createDirectory(atPath: state, withIntermediateDirectories: true)
      try Data(repeating: 0x2E, count: 8192).write(to: URL(filePath: "\(state)/history.db"))
      try expectRefusal(rig, "vehicled-history", ["--state", state])
    }

    /// Starts a program as systemd does for three clients, and expects that it ends with this status, and the connections.
    private func expectRefusal(_ rig: Rig, _ name: String, _ arguments: [String] = [], status: Int = 2) throws {
      let script = """
        import os, socket, sys
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(sys.argv[1]); listener.listen(8)
        clients = [socket.socket(socket.AF_UNIX) for _ in range(3)]
        for client in clients:
            client.connect(sys.argv[1]); client.settimeout(10)
        pid = os.fork()
        if pid == 0:
            os.dup2(listener.fileno(), 3); os.set_inheritable(3, True)
            os.environ["LISTEN_FDS"] = "1"; os.environ["LISTEN_PID"] = str(os.getpid())
            os.execv(sys.argv[2], sys.argv[2:])
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        print(status, [client.recv(1) for client in clients])
        """
      let outcome = rig.run(
        "/usr/bin/env", ["python3", "-c", script, rig.socket, "\(Rig.programs)/\(name)", "--config", rig.configuration] + arguments)
      #expect(outcome.output == "\(status) [b'', b'', b'']\n", "\(outcome.errors)")
    }

    @Test func `clients that do not speak Varlink are disconnected without affecting others`() throws {
      let rig = try Rig()
      let (daemon, _) = try rig.ev()
      #expect(wait { rig.get("rpm") != nil })
      let good = try RawClient(rig.socket)
      good.send(#"{"method":"io.vehicled.Watch","more":true}"#)
      #expect(good.next() != nil)
      for bad in [
        "hello", "[]", "{", #"{"method":1}"#, #"{"method":"a.b","more":true,"oneway":true}"#, String(repeating: "[", count: 5000),
      ] {
        let client = try RawClient(rig.socket)
        client.send(bad)
        #expect(client.next() == nil, "\(bad.prefix(40))")
      }
      let endless = try RawClient(rig.socket)
      var sent = 0
      while sent < 8 << 20, endless.send([UInt8](repeating: 65, count: 65536)) { sent += 65536 }
      #expect(sent < 4 << 20)
      for _ in 0..<20 { #expect(good.next() != nil) }
      #expect(daemon.isRunning)
      #expect(daemon.stderr.components(separatedBy: "client connection closed: protocol error").count == 8)
    }

    @Test func `all calls of a client that half-closes its connection are answered`() throws {
      let rig = try Rig()
      _ = try rig.ev()
      for count in [3, 1000, 4000] {
        let client = try RawClient(rig.socket)
        let call = Array(#"{"method":"org.varlink.service.GetInfo"}"#.utf8) + [0]
        // Calls that do not fit into the socket are sent once replies are read.
        let descriptor = client.descriptor
        Thread {
          var rest = [[UInt8]](repeating: call, count: count).flatMap { $0 }[...]
          while !rest.isEmpty {
            let sent = rest.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            if sent <= 0 { break }
            rest = rest.dropFirst(sent)
          }
          shutdown(descriptor, Int32(SHUT_WR))
        }.start()
        var answers = 0
        while client.next() != nil { answers += 1 }
        #expect(answers == count)
      }
    }

    @Test func `a client that half-closes its connection is answered before it is disconnected`() throws {
      let rig = try Rig()
      let (daemon, _) = try rig.ev()
      #expect(wait { rig.get("rpm") != nil })
      let call = #"{"method":"io.vehicled.Call","parameters":{"device":"ev","action":"query","arguments":{"request":{"string":"ATI"}}}}"#
      let get = #"{"method":"io.vehicled.Get","parameters":{"references":["ev.rpm"]}}"#
      let client = try RawClient(rig.socket)
      client.send(Array((call + "\0" + get + "\0" + get + "\0{\"meth").utf8))
      shutdown(client.descriptor, Int32(SHUT_WR))
      #expect((client.next()?["parameters"] as? [String: Any])?["rows"] != nil)
      for _ in 0..<2 { #expect((client.next()?["parameters"] as? [String: Any])?["readings"] != nil) }
      #expect(client.next() == nil)
      // A client that disconnects while watching or recording leaves no descriptor open.
      let descriptors = { (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(daemon.pid)/fd").count) ?? -1 }
      let before = descriptors()
      for method in ["Watch", "Record"] {
        let parameters = method == "Record" ? #"{"device":"ev"}"# : "{}"
        let gone = try RawClient(rig.socket)
        gone.send(#"{"method":"io.vehicled.\#(method)","parameters":\#(parameters),"more":true}"#)
        #expect(gone.next() != nil)
      }
      #expect(wait { descriptors() <= before })
    }

    @Test func `a full standard error does not block the daemon`() throws {
      let rig = try Rig()
      try rig.write("")
      let script = #"exec "$@" 2>"$FIFO""#
      let fifo = "\(rig.directory)/fifo"
      #expect(mkfifo(fifo, 0o600) == 0)
      let reader = open(fifo, O_RDWR | O_NONBLOCK | O_CLOEXEC)
      defer { close(reader) }
      let daemon = try Program(
        "/bin/sh", ["-c", script, "sh", "\(Rig.programs)/vehicled", "--config", rig.configuration, "--socket", rig.socket],
        environment: ["FIFO": fifo], in: rig.directory)
      #expect(wait { rig.vehiclectl("version").status == 0 })
      // The pipe is full and is not read.
      let filler = [UInt8](repeating: 10, count: 4096)
      while write(reader, filler, filler.count) > 0 {}
      for _ in 0..<30 {
        daemon.signal(SIGHUP)
        let client = try RawClient(rig.socket)
        client.send("nonsense")
        #expect(client.next() == nil)
      }
      #expect(rig.vehiclectl("status").status == 0)
      #expect(daemon.end() == 0)
    }

    @Test func `a client that stops reading does not delay others`() throws {
      let rig = try Rig()
      let (daemon, _) = try rig.ev()
      #expect(wait { rig.get("rpm") != nil })
      let idle = (0..<10).map { _ in try? RawClient(rig.socket) }
      for client in idle { client?.send(#"{"method":"io.vehicled.Watch","more":true}"#) }
      let good = try RawClient(rig.socket)
      good.send(#"{"method":"io.vehicled.Watch","more":true}"#)
      var last = -1
      for _ in 0..<100 {
        let reply = try #require(good.next()?["parameters"] as? [String: Any])
        let sequence = try #require(reply["sequence"] as? Int)
        #expect(sequence == last + 1)
        last = sequence
      }
      #expect(daemon.isRunning)
    }

    @Test func `pipelined calls are answered in order, and oneway calls are not answered`() throws {
      let rig = try Rig()
      try rig.write("[device.ev]\nkind = \"obd\"\nlink = \"tcp:127.0.0.1:1\"\n")
      let daemon = try rig.daemon()
      let client = try RawClient(rig.socket)
      let calls = [
        #"{"method":"io.vehicled.Get","parameters":{"references":["ev.rpm"]}}"#,
        #"{"method":"io.vehicled.Nonsense","oneway":true}"#,
        #"{"method":"io.vehicled.Set","parameters":{"device":"ev","property":"rpm","value":{"int":1}}}"#,
        #"{"method":"org.varlink.service.GetInfo","parameters":{}}"#,
        #"{"method":"io.vehicled.Status","parameters":{"devise":"ev"}}"#,
      ]
      client.send(calls.map { $0 + "\0" }.joined().utf8.map { $0 })
      #expect((client.next()?["parameters"] as? [String: Any])?["readings"] != nil)
      #expect(client.next()?["error"] as? String == "io.vehicled.ReadOnly")
      #expect((client.next()?["parameters"] as? [String: Any])?["product"] as? String == "vehicled")
      let last = client.next()
      #expect(last?["error"] as? String == "org.varlink.service.InvalidParameter")
      #expect((last?["parameters"] as? [String: Any])?["parameter"] as? String == "devise")
      #expect(daemon.isRunning)
    }

    @Test(arguments: [
      "babble", "garbage:1", "split:3", "lost-prompt:5", "hang:20:300", "disconnect:30", "no-count", "clone", "echo", "lv-reset:40",
    ])
    func `another car is polled despite an adapter with the fault`(_ fault: String) throws {
      let rig = try Rig()
      let good = try rig.simulator()
      let bad = try rig.simulator("--fault", fault)
      try rig.write(
        "[device.ev]\nkind = \"obd\"\nlink = \"\(good.link)\"\n[device.bad]\nkind = \"obd\"\nlink = \"\(bad.link)\"\n")
      let daemon = try rig.daemon()
      #expect(wait { rig.get("ev.rpm") != nil })
      let before = Int(rig.get("ev.polls") ?? "") ?? 0
      if !["babble", "garbage:1"].contains(fault) {
        #expect(wait(seconds: 15) { rig.get("bad.battery-voltage") != nil }, "\(rig.vehiclectl("status", "bad").output)")
      }
      #expect(wait { (Int(rig.get("ev.polls") ?? "") ?? 0) > before + 15 })
      #expect(rig.get("ev.rpm") != nil)
      let status = try String(contentsOfFile: "/proc/\(daemon.pid)/status", encoding: .utf8)
      let resident = try #require(status.split(separator: "\n").first { $0.hasPrefix("VmRSS") }?.split(whereSeparator: \.isWhitespace)[1])
      #expect(try #require(Int(resident)) < 150_000)
    }

    @Test func `each kind of error has its exit status`() throws {
      let rig = try Rig()
      #expect(rig.vehiclectl("status").status == 3)
      let (_, _) = try rig.ev()
      #expect(wait { rig.get("rpm") != nil })
      #expect(rig.vehiclectl("get", "ev.rpx").status == 4)
      #expect(rig.vehiclectl("get", "bus.rpm").status == 4)
      #expect(rig.vehiclectl("set", "rpm", "1").status == 2)
      #expect(rig.vehiclectl("do", "ev.nothing").status == 4)
      #expect(rig.vehiclectl("--frobnicate").status == 2)
      #expect(rig.vehiclectl("disconnect", "ev").status == 0)
      #expect(rig.vehiclectl("get", "rpm").status == 5)
      #expect(rig.vehiclectl("do", "ev.query", "010C").status == 5)
      let failed = rig.vehiclectl("--json", "get", "ev.rpx")
      #expect(try failed.json()["error"] as? String == "io.vehicled.NoSuchProperty")
      #expect(failed.errors.split(separator: "\n").count == 1)
    }
  }
}
