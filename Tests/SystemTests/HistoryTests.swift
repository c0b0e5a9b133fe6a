// vehicled-history with the real daemon and a simulated car: what is recorded, and that it survives restarts, kills and full disks.

import CLinux
import Foundation
import ServiceRuntime
import Testing

extension EndToEndServices {
  @Suite("History") struct HistoryTests {
    /// The history beside a rig with a simulated car.
    private final class History {
      let rig: Rig
      var directory: String
      var socket: String { "\(rig.directory)/history" }

      init(_ rig: Rig) { (self.rig, directory) = (rig, "\(rig.directory)/values") }

      func launch(_ arguments: String...) throws -> Program {
        try rig.start("vehicled-history", ["--socket", socket, "--daemon", rig.socket, "--state", directory] + arguments)
      }

      /// Starts the service, and waits until it replies.
      func start(_ arguments: String...) throws -> Program {
        let program = try rig.start(
          "vehicled-history", ["--socket", socket, "--daemon", rig.socket, "--state", directory] + arguments)
        try #require(wait { !program.isRunning || status() != nil })
        try #require(program.isRunning, "\(program.stderr)")
        return program
      }

      /// The replies to a call.
      func call(_ method: String, _ parameters: [String: Any] = [:], more: Bool = false) throws -> [[String: Any]] {
        let client = try RawClient(socket)
        let name = method.contains(".") ? method : "io.vehicled.history.\(method)"
        var call: [String: Any] = ["method": name, "parameters": parameters]
        if more { call["more"] = true }
        client.send(String(decoding: try JSONSerialization.data(withJSONObject: call), as: UTF8.self))
        var replies: [[String: Any]] = []
        while let reply = client.next() {
          replies.append(reply)
          if reply["continues"] as? Bool != true { break }
        }
        return replies
      }

      /// The only reply's parameters.
      func result(_ method: String, _ parameters: [String: Any] = [:]) throws -> [String: Any] {
        let reply = try #require(call(method, parameters).first)
        try #require(reply["error"] == nil, "\(reply)")
        return reply["parameters"] as? [String: Any] ?? [:]
      }

      func status() -> [String: Any]? {
        // The socket of a killed service refuses connections, which is no failure of the test.
        guard let probe = try? UnixSocket.connect(to: socket) else { return nil }
        close(probe)
        guard let client = try? RawClient(socket) else { return nil }
        client.send(#"{"method":"io.vehicled.history.Status"}"#)
        return client.next()?["parameters"] as? [String: Any]
      }

      func periods(_ kind: String) throws -> [[String: Any]] {
        try #require(result("Periods", ["kind": kind])["periods"] as? [[String: Any]])
      }

      /// The values of a property, and the reasons for its absence.
      func samples(_ property: String) throws -> [[String: Any]] {
        let replies = try call("Samples", ["device": "ev", "properties": [property]], more: true)
        if replies.last?["error"] != nil { return [] }
        return replies.flatMap { ($0["parameters"] as? [String: Any])?["samples"] as? [[String: Any]] ?? [] }
      }

      /// Stores what was recorded until now.
      func flush() throws { _ = try result("Compact") }

      func check() throws -> (blocks: Int, damage: [String]) {
        let last = try #require(call("Check", more: true).last?["parameters"] as? [String: Any])
        return (last["blocks"] as? Int ?? -1, try #require(last["damage"] as? [String]))
      }

      /// Waits until the open trip has this number of metres.
      func drives(metres: Double) throws -> Bool {
        wait(seconds: 30) {
          let trip = try? periods("trip").last
          return ((trip?["distance"] as? [String: Any])?["value"] as? Double ?? 0) * 1000 >= metres
        }
      }
    }

    @Test func `an import reports as many samples as vehiclesim has written`() throws {
      let rig = try Rig()
      let history = History(rig)
      _ = try history.start()
      let written = rig.run("\(Rig.programs)/vehiclesim", ["history", "--case", "garage-door", "--rate", "1", "--output", "case.blocks"])
      let figures = try JSONSerialization.jsonObject(with: Data(written.output.utf8)) as? [String: Any]
      let count = try #require(figures?["stored"] as? Int, "\(written)")
      let imported = rig.run("\(Rig.programs)/vehiclectl", ["history", "import", "case.blocks", "--history-socket", history.socket])
      #expect(imported.status == 0 && imported.errors == "imported \(count) samples\n", "\(imported)")
    }

    @Test func `a drive is recorded, goes on after restarts, and survives kills`() throws {
      let rig = try Rig()
      let (daemon, _) = try rig.ev()
      let history = History(rig)
      var service = try history.start()
      #expect(try history.drives(metres: 60))
      let trip = try #require(try history.periods("trip").last)
      #expect(trip["open"] as? Bool == true && trip["device"] as? String == "ev" && trip["zone"] as? String != "")
      let number = try #require(trip["number"] as? Int)

      try history.flush()
      let series = try #require(try history.result("Series", ["device": "ev"])["series"] as? [[String: Any]])
      let speed = try #require(series.first { $0["property"] as? String == "speed" })
      #expect(speed["unit"] as? String == "km/h")
      #expect(series.contains { $0["property"] as? String == "state" && $0["type"] as? String == "string" })
      let before = try history.samples("speed")
      #expect(before.count >= 3 && before.allSatisfy { $0["series"] as? Int == speed["id"] as? Int })
      let times = before.compactMap { $0["time"] as? Int }
      #expect(times == times.sorted() && Set(times).count == times.count)
      let range = ["device": "ev", "property": "speed", "start": times[0], "end": times[times.count - 1], "points": 10] as [String: Any]
      let points = try #require(try history.result("Plot", range)["points"] as? [[String: Any]])
      #expect(points.contains { $0["maximum"] as? Double ?? 0 > 10 })

      #expect(service.end() == 0, "\(service.stderr)")
      service = try history.start()
      #expect(try history.samples("speed").count >= before.count, "a clean end loses nothing")
      #expect(wait { (try? history.periods("trip").last?["open"] as? Bool) == true })
      #expect(try history.periods("trip").last?["number"] as? Int == number, "the trip goes on")

      for _ in 0..<5 {
        usleep(300_000)
        service.end(SIGKILL)
        service = try history.start()
        let check = try history.check()
        #expect(check.blocks > 0 && check.damage == [])
      }
      #expect(wait { (try? history.periods("trip").last?["number"] as? Int) == number })
      let all = try history.samples("speed")
      #expect(all.prefix(before.count).map { $0["time"] as? Int } == before.map { $0["time"] as? Int })
      #expect(all.contains { $0["reason"] as? String == "not recorded" }, "the time between is a gap")
      #expect(daemon.isRunning)
    }

    @Test func `a restart of the daemon is a gap, and recording goes on`() throws {
      let rig = try Rig()
      let (daemon, _) = try rig.ev()
      let history = History(rig)
      let service = try history.start()
      #expect(try history.drives(metres: 20))
      daemon.end()
      #expect(wait { (history.status()?["reason"] as? String)?.contains("systemctl status vehicled") == true })
      #expect(history.status()?["recording"] as? Bool == false)
      _ = try rig.daemon()
      #expect(wait(seconds: 20) { history.status()?["recording"] as? Bool == true })
      #expect(
        wait(seconds: 20) {
          try? history.flush()
          let samples = (try? history.samples("speed")) ?? []
          guard let gap = samples.firstIndex(where: { $0["reason"] as? String == "not recorded" }) else { return false }
          return samples[gap...].contains { $0["value"] != nil }
        })
      #expect(service.stderr.components(separatedBy: "not recording").count == 2, "logged once")
      #expect(service.end() == 0)
    }

    @Test func `a value ends with its lifetime while the daemon is stopped`() throws {
      let rig = try Rig()
      let (daemon, _) = try rig.ev()
      let history = History(rig)
      _ = try history.start()
      #expect(try history.drives(metres: 20))
      daemon.signal(SIGSTOP)
      usleep(7_000_000)
      daemon.signal(SIGCONT)
      // The speed is polled once per second, and valid for 3 s. The time on both sides of the absence is that of the last value before and the first one after the stop.
      #expect(
        wait(seconds: 20) {
          try? history.flush()
          let samples = (try? history.samples("speed")) ?? []
          guard let end = samples.firstIndex(where: { $0["reason"] as? String == "stale" }), end > 0,
            let values = samples[(end + 1)...].first(where: { $0["value"] != nil }), let after = values["time"] as? Int,
            let before = samples[end - 1]["time"] as? Int, let absent = samples[end]["time"] as? Int
          else { return false }
          return samples[end - 1]["value"] != nil && absent - before == 3_000_000 && after - absent > 2_500_000
        }, "\((try? history.samples("speed")) ?? [])")
    }

    @Test func `deleted values leave the open trip and the current values`() throws {
      let rig = try Rig()
      _ = try rig.ev()
      let history = History(rig)
      let service = try history.start()
      #expect(try history.drives(metres: 40))
      let trip = try #require(try history.periods("trip").last)
      _ = try history.result("Delete", ["device": "ev", "end": 1_700_000_000_000_000])
      let after = try history.periods("trip")
      #expect(after.count == 1 && after.last?["start"] as? Int == trip["start"] as? Int && after.last?["open"] as? Bool == true, "\(after)")
      #expect(try history.drives(metres: 60))
      // Everything, while the device goes on: values that do not change are recorded again.
      _ = try history.result("Delete", ["device": "ev"])
      let properties = { () -> Set<String> in
        try? history.flush()
        let series = (try? history.result("Series", ["device": "ev"])["series"] as? [[String: Any]]) ?? []
        return Set(series.compactMap { $0["property"] as? String })
      }
      #expect(wait { properties().isSuperset(of: ["vin", "odometer", "state", "speed"]) }, "\(properties())")
      #expect(try history.periods("trip").filter { $0["open"] as? Bool == true }.count <= 1)
      #expect(service.isRunning)
    }

    @Test func `the periods of imported values are computed, also after a restart`() throws {
      let rig = try Rig()
      let history = History(rig)
      var service = try history.start()
      let recording = Documents.root.appendingPathComponent("Tests/Recordings/history/commute.blocks").path
      let outcome = rig.run("\(Rig.programs)/vehiclectl", ["history", "import", "--history-socket", history.socket, recording])
      #expect(outcome.status == 0, "\(outcome.errors)")
      service.end(SIGKILL)
      service = try history.start()
      #expect(wait(seconds: 30) { (try? history.periods("trip").isEmpty) == false }, "\(service.stderr)")
    }

    @Test(arguments: ["--csv", "--ndjson", "--blocks"])
    func `exports of consecutive times can be imported in any order`(_ format: String) throws {
      let rig = try Rig()
      let history = History(rig)
      _ = try history.start()
      func run(_ arguments: String...) throws -> String {
        let outcome = rig.run(
          "\(Rig.programs)/vehiclectl", ["history", arguments[0], "--history-socket", history.socket] + arguments[1...])
        try #require(outcome.status == 0, "\(outcome.errors)")
        return outcome.output + outcome.errors
      }
      _ = try run("import", Documents.root.appendingPathComponent("Tests/Recordings/history/commute.blocks").path)
      let device = try #require((history.result("Series")["series"] as? [[String: Any]])?.first?["device"] as? String)
      func times() throws -> Set<Int> {
        let replies = try history.call("Samples", ["device": device], more: true)
        let samples = replies.flatMap { ($0["parameters"] as? [String: Any])?["samples"] as? [[String: Any]] ?? [] }
        return Set(samples.filter { $0["value"] != nil }.compactMap { $0["time"] as? Int })
      }
      let recorded = try times()
      let sorted = recorded.sorted()
      // The boundary is at a time without samples, in the middle of a block.
      let boundary = sorted[sorted.count / 2] / 1_000_000 + 1
      let text = ISO8601DateFormatter().string(from: Date(timeIntervalSince1970: Double(boundary)))
      _ = try run("export", format, "--output", "\(rig.directory)/late", "--since", text)
      _ = try run("export", format, "--output", "\(rig.directory)/early", "--until", text)
      _ = try run("delete", device, "--yes")
      for file in ["late", "early"] { #expect(try run("import", "\(rig.directory)/\(file)").contains("imported")) }
      let again = try times()
      #expect(recorded.subtracting(again).isEmpty && again.subtracting(recorded).isSubset(of: [boundary * 1_000_000]))
    }

    @Test func `a second instance is refused, and the first one goes on`() throws {
      let rig = try Rig()
      let history = History(rig)
      let first = try history.start()
      let second = try rig.start(
        "vehicled-history", ["--socket", "\(rig.directory)/other", "--daemon", rig.socket, "--state", history.directory])
      #expect(second.status(within: 10) == 1)
      #expect(second.stderr.contains("in use by another vehicled-history; stop it, or choose another directory"), "\(second.stderr)")
      let third = try rig.start(
        "vehicled-history", ["--socket", history.socket, "--daemon", rig.socket, "--state", "\(rig.directory)/third"])
      #expect(third.status(within: 10) == 1)
      #expect(third.stderr.contains("is in use by another vehicled-history"), "\(third.stderr)")
      #expect(history.status() != nil && first.isRunning)
    }

    @Test func `a damaged database is named with its remedy, and not touched`() throws {
      let rig = try Rig()
      let history = History(rig)
      try FileManager.default.createDirectory(atPath: history.directory, withIntermediateDirectories: true)
      let file = "\(history.directory)/history.db"
      let garbage = String(repeating: "not a database ", count: 500)
      try rig.write(garbage, to: file)
      let service = try history.launch()
      #expect(service.status(within: 10) == 2)
      #expect(service.stderr.contains("\(file) is damaged") && service.stderr.contains("move it away"), "\(service.stderr)")
      #expect(try String(contentsOfFile: file, encoding: .utf8) == garbage)
    }

    @Test func `methods report what is wrong with their arguments`() throws {
      let rig = try Rig()
      let history = History(rig)
      _ = try history.start()
      let cases: [(String, [String: Any], Bool, String, String)] = [
        ("Series", ["device": "ev"], false, "NotRecorded", "ev"),
        ("Samples", ["device": "ev"], true, "NotRecorded", "ev"),
        ("Periods", ["kind": "nap"], false, "InvalidArgument", "use one of trip, charge, parking"),
        ("Periods", ["start": 2, "end": 1], false, "InvalidArgument", "end is before start"),
        ("Periods", ["limit": 0], false, "InvalidArgument", "limit"),
        ("Period", ["number": 7], false, "NoSuchPeriod", "7"),
        ("Plot", ["device": "ev", "property": "speed", "start": 0, "end": 1, "points": 0], false, "InvalidArgument", "points"),
        ("Delete", ["device": "ev"], false, "NotRecorded", "ev"),
        ("Recut", ["device": "ev"], true, "NotRecorded", "ev"),
        (
          "Import", ["device": "EV", "source": "s", "series": [Any](), "block": "", "continues": false], false, "InvalidArgument",
          "device name"
        ),
        (
          "Import", ["device": "ev", "source": "s", "series": [Any](), "block": "?", "continues": false], false, "InvalidArgument", "Base64"
        ),
        (
          "Import", ["device": "ev", "source": "s", "series": [Any](), "block": "AAAA", "continues": false], false, "InvalidArgument",
          "damaged"
        ),
      ]
      for (method, parameters, more, error, text) in cases {
        let reply = try #require(try history.call(method, parameters, more: more).last)
        #expect(reply["error"] as? String == "io.vehicled.history.\(error)", "\(method) \(reply)")
        #expect("\(reply["parameters"] ?? "")".contains(text), "\(method) \(reply)")
      }
      let expected = try history.call("Samples", ["device": "ev"]).last?["error"] as? String
      #expect(expected?.hasSuffix("ExpectedMore") == true)
      #expect(try history.result("Alerts")["alerts"] as? [Any] != nil)
    }

    @Test func `the interface describes itself`() throws {
      let rig = try Rig()
      let history = History(rig)
      _ = try history.start()
      let info = try history.result("org.varlink.service.GetInfo")
      #expect(info["product"] as? String == "vehicled-history")
      #expect(info["interfaces"] as? [String] == ["org.varlink.service", "io.vehicled.history"])
      let text = try history.result("org.varlink.service.GetInterfaceDescription", ["interface": "io.vehicled.history"])["description"]
      let file = Documents.root.appendingPathComponent("Sources/Varlink/io.vehicled.history.varlink")
      #expect(text as? String == (try String(contentsOf: file, encoding: .utf8)))
    }

    @Test func `alerts are logged once, streamed, and leave a file for their program`() throws {
      let rig = try Rig()
      _ = try rig.ev()
      let history = History(rig)
      let configuration = "\(rig.directory)/history.toml"
      let alerts = "\(rig.directory)/alerts"
      try FileManager.default.createDirectory(atPath: alerts, withIntermediateDirectories: true)
      try rig.write(
        "[alert.moving]\ncondition = \"ev.speed > 5\"\nrun-program = true\n[alert.hot]\ncondition = \"ev.speed > 900\"\n",
        to: configuration)
      let arguments = ["--socket", history.socket, "--daemon", rig.socket, "--state", history.directory, "--config", configuration]
      var service = try rig.start("vehicled-history", arguments, environment: ["RUNTIME_DIRECTORY": alerts])
      try #require(wait { history.status() != nil }, "\(service.stderr)")
      // The service writes the file in place, one line, so that its end triggers the path unit.
      let moving = { FileManager.default.contents(atPath: "\(alerts)/moving") }
      #expect(wait(seconds: 20) { moving()?.last == UInt8(ascii: "\n") })
      let file = try #require(moving())
      let alert = try #require(JSONSerialization.jsonObject(with: file) as? [String: Any])
      #expect(alert["name"] as? String == "moving" && alert["state"] as? String == "raised")
      #expect((alert["text"] as? String)?.hasPrefix("ev.speed > 5 (ev.speed: ") == true)
      let client = try RawClient(history.socket)
      client.send(#"{"method":"io.vehicled.history.Alerts","more":true}"#)
      let all = try #require((client.next()?["parameters"] as? [String: Any])?["alerts"] as? [[String: Any]])
      #expect(all.map { $0["name"] as? String } == ["moving", "hot"] && all[1]["state"] as? String == "ok")
      #expect(service.stderr.components(separatedBy: "alert moving: ").count == 2)
      try FileManager.default.removeItem(atPath: "\(alerts)/moving")
      #expect(service.end() == 0)
      service = try rig.start("vehicled-history", arguments, environment: ["RUNTIME_DIRECTORY": alerts])
      try #require(wait { history.status() != nil }, "\(service.stderr)")
      #expect(
        wait(seconds: 20) {
          let alerts = try? history.result("Alerts")["alerts"] as? [[String: Any]]
          return alerts?.contains { $0["name"] as? String == "moving" && $0["state"] as? String != "unknown" } == true
        })
      #expect(!service.stderr.contains("alert moving: "), "it was reported before the restart")
      #expect(!FileManager.default.fileExists(atPath: "\(alerts)/moving"))
    }

    /// A small file system of its own, which only root can mount.
    private final class Disk {
      let path: String

      init?(_ path: String, options: String, flags: UInt = 0) {
        self.path = path
        mkdir(path, 0o700)
        guard mount("history", path, "tmpfs", flags, options) == 0 else { return nil }
      }

      deinit { umount2(path, Int32(MNT_DETACH)) }
    }

    private static let canMount: Bool = {
      let path = "/tmp/vehicled-mount-\(getpid())"
      defer { rmdir(path) }
      return Disk(path, options: "size=64k") != nil
    }()

    @Test(.enabled(if: canMount, "only root can mount a small file system"))
    func `a full disk is reported, and recording goes on once there is space`() throws {
      let rig = try Rig()
      let disk = try #require(Disk("\(rig.directory)/disk", options: "size=6m"))
      defer { withExtendedLifetime(disk) {} }
      _ = try rig.ev()
      let history = History(rig)
      history.directory = "\(disk.path)/values"
      let service = try history.start()
      #expect(try history.drives(metres: 20))
      // All space but that of the reserve, which the service gives up first.
      let filler = "\(disk.path)/filler"
      _ = FileManager.default.createFile(atPath: filler, contents: nil)
      let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: filler))
      let isFull = wait(seconds: 60) {
        while (try? handle.write(contentsOf: Data(repeating: 1, count: 4096))) != nil {}
        return (history.status()?["reason"] as? String)?.contains("disk full") == true
      }
      #expect(isFull, "\(service.stderr)")
      #expect(history.status()?["recording"] as? Bool == false)
      #expect(service.stderr.contains("values are buffered in memory: cannot write"), "\(service.stderr)")
      #expect(history.status() != nil, "it still replies")
      try handle.truncate(atOffset: 0)
      #expect(wait(seconds: 30) { history.status()?["recording"] as? Bool == true })
      #expect(service.stderr.contains("values are stored again; nothing was lost"), "\(service.stderr)")
      #expect(try history.check().damage == [])
      #expect(service.end() == 0)
    }

    @Test(.enabled(if: canMount, "only root can mount a small file system"))
    func `a read-only disk is named with its remedy`() throws {
      let rig = try Rig()
      let disk = try #require(Disk("\(rig.directory)/disk", options: "size=1m", flags: UInt(MS_RDONLY)))
      defer { withExtendedLifetime(disk) {} }
      let history = History(rig)
      history.directory = "\(disk.path)/values"
      let service = try history.launch()
      #expect(service.status(within: 10) == 1)
      #expect(service.stderr.contains("mount the file system writable"), "\(service.stderr)")
    }
  }
}
