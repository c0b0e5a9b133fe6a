// vehicled-mqtt with the real daemon, a simulated car, and mosquitto: values, absences, commands, and what happens without the broker.

import Foundation
import Testing

extension EndToEndServices {
  @Suite("MQTT") struct MQTTTests {
    /// The arguments with which Python runs a program without blocked signals. The threads of the tests block some, which programs inherit;
    /// those of mosquitto need SIGALRM and SIGTERM.
    private static func unblocked(_ program: String, _ arguments: [String]) -> [String] {
      ["-c", "import os, signal, sys; signal.pthread_sigmask(signal.SIG_SETMASK, []); os.execv(sys.argv[1], sys.argv[1:])", program]
        + arguments
    }

    /// A broker, the bridge, and the clients of mosquitto beside a rig with a simulated car.
    private final class Bridge {
      let rig: Rig
      let port: UInt16
      private(set) var broker: Program?
      private(set) var program: Program?

      init(_ rig: Rig) throws {
        self.rig = rig
        port = try freePort()
      }

      /// Starts mosquitto with these further lines of its configuration.
      func startBroker(_ lines: String = "allow_anonymous true\n") throws {
        let path = "\(rig.directory)/mosquitto.conf"
        // As another user, the broker could not read the files of the test.
        try rig.write("listener \(port) 127.0.0.1\nuser root\n\(lines)", to: path)
        broker = try Program(Rig.python, MQTTTests.unblocked("/usr/sbin/mosquitto", ["-c", path]), in: rig.directory)
        try #require(wait { broker?.stderr.contains("running") == true }, "\(broker?.stderr ?? "")")
      }

      func endBroker(_ signal: Int32 = SIGTERM) { broker?.end(signal) }

      func start(_ keys: String = "", broker: String? = nil) throws {
        let path = "\(rig.directory)/mqtt.toml"
        try rig.write("[mqtt]\nbroker = \"\(broker ?? "mqtt://127.0.0.1:\(port)")\"\nhost = \"pi\"\ninterval = 1\n\(keys)\n", to: path)
        program = try rig.start("vehicled-mqtt", ["--config", path, "--daemon", rig.socket, "--state", "\(rig.directory)/queue"])
      }

      func logs(_ text: String, seconds: Double = 20) -> Bool { wait(seconds: seconds) { program?.stderr.contains(text) == true } }

      /// The messages on some topics within a time, as `TOPIC PAYLOAD`.
      func messages(_ topics: String..., seconds: Int = 1, options: [String] = []) -> [String] {
        let filters = topics.flatMap { ["-t", $0] }
        let arguments = ["-h", "127.0.0.1", "-p", "\(port)", "-v", "-W", "\(seconds)"] + filters + options
        return rig.run(Rig.python, MQTTTests.unblocked("/usr/bin/mosquitto_sub", arguments)).lines.map(String.init)
      }

      func value(_ property: String) -> String? {
        // amqtt delivers retained configurations also to clients that have not subscribed to them.
        let lines = messages("vehicled/ev/\(property)", options: ["-C", "1", "-T", "homeassistant/#"])
        return lines.first.map { String($0.dropFirst("vehicled/ev/\(property) ".count)) }
      }

      @discardableResult func publish(_ topic: String, _ payload: String, options: [String] = []) -> Outcome {
        rig.run("/usr/bin/mosquitto_pub", ["-h", "127.0.0.1", "-p", "\(port)", "-t", topic, "-m", payload] + options)
      }

      /// The most resident memory that the bridge has used, in kB.
      func peakMemory() throws -> Int {
        let status = try String(contentsOfFile: "/proc/\(program?.pid ?? 0)/status", encoding: .utf8)
        return try #require(status.firstMatch(of: /VmHWM:\s+(\d+)/).flatMap { Int($0.1) })
      }

      deinit { broker?.end(SIGKILL) }
    }

    private func bridge(_ keys: String = "", options: String = "") throws -> (bridge: Bridge, simulator: Program) {
      let rig = try Rig()
      let (_, simulator) = try rig.ev(options: options)
      let bridge = try Bridge(rig)
      try bridge.startBroker()
      try bridge.start(keys)
      try #require(bridge.logs("connected to mqtt://127.0.0.1:\(bridge.port) by MQTT 5"), "\(bridge.program?.stderr ?? "")")
      return (bridge, simulator)
    }

    @Test func `values, links and the configuration of Home Assistant are published and retained`() throws {
      let (bridge, _) = try bridge()
      #expect(wait { Double(bridge.value("speed") ?? "") != nil })
      #expect(
        bridge.messages("vehicled/pi/status", "vehicled/ev/link", "vehicled/ev/state") == [
          "vehicled/pi/status online", "vehicled/ev/link up", "vehicled/ev/state polling",
        ])
      let line = try #require(bridge.messages("homeassistant/device/+/config", options: ["-C", "1"]).first)
      let json = try #require(
        JSONSerialization.jsonObject(with: Data(line.drop { $0 != "{" }.utf8)) as? [String: Any])
      let components = try #require(json["cmps"] as? [String: [String: Any]])
      #expect(components["sensor-speed"]?["unit_of_meas"] as? String == "km/h" && components["sensor-speed"]?["exp_aft"] as? Int == 180)
      #expect(components["sensor-odometer"] == nil || components["sensor-odometer"]?["exp_aft"] == nil)
      #expect(components["sensor-vin"] == nil, "the VIN is private")
      #expect(components.values.allSatisfy { $0["cmd_t"] == nil }, "nothing is allowed")
      #expect(bridge.messages("vehicled/ev/vin") == [])
    }

    @Test func `without the car fresh values are absent with a reason, and retained ones stay`() throws {
      let (bridge, simulator) = try bridge()
      #expect(wait { Double(bridge.value("speed") ?? "") != nil && Double(bridge.value("odometer") ?? "") != nil })
      let odometer = bridge.value("odometer")
      simulator.end(SIGKILL)
      #expect(wait { bridge.value("speed") == "None" })
      #expect(bridge.messages("vehicled/ev/link").first != "vehicled/ev/link up")
      #expect(bridge.messages("vehicled/ev/speed/attributes").first?.contains("\"reason\":\"") == true)
      #expect(bridge.value("odometer") == odometer)
    }

    @Test func `commands need the right of both sides, and are answered`() throws {
      let (bridge, _) = try bridge("control = [\"ev.*\", \"evv.led\"]")
      #expect(bridge.logs("connected to \(bridge.rig.socket)"))
      #expect(bridge.logs("control: \"evv.led\" selects nothing: there is no device evv; did you mean ev?"))
      #expect(wait { bridge.value("speed") != nil })
      let answer = { (topic: String, payload: String) in
        bridge.rig.run(
          Rig.python,
          Self.unblocked(
            "/usr/bin/mosquitto_rr",
            ["-h", "127.0.0.1", "-p", "\(bridge.port)", "-V", "5", "-t", topic, "-m", payload, "-e", "vehicled/response/1", "-W", "5"])
        ).output
      }
      #expect(answer("vehicled/ev/speed/set", "5").contains(#"{"ok":false,"error":"ev.speed is read-only"}"#))
      #expect(answer("vehicled/ev/dtc-clear/do", "").contains("ev.dtc-clear is not available by MQTT"))
      #expect(answer("vehicled/ev/ecu-codes/do", "").contains(#"{"ok":true}"#))
      #expect(answer("vehicled/other/led/set", "1").contains("other.led is not allowed"))
      bridge.publish("vehicled/ev/dtc/do", "", options: ["-r"])
      bridge.publish("vehicled/ev/speed/set", String(repeating: "9", count: 100_000))
      #expect(bridge.logs("the payload is not text of at most 4096 bytes"))
      #expect(bridge.program?.isRunning == true)
    }

    @Test func `values go on after the broker was killed, and the will is published when the bridge is`() throws {
      let (bridge, _) = try bridge()
      #expect(wait { bridge.value("speed") != nil })
      for _ in 0..<3 {
        bridge.endBroker(SIGKILL)
        try bridge.startBroker()
        #expect(wait(seconds: 20) { Double(bridge.value("speed") ?? "") != nil })
      }
      #expect(bridge.messages("vehicled/pi/status") == ["vehicled/pi/status online"])
      #expect(bridge.program?.end() == 0)
      #expect(
        bridge.messages("vehicled/pi/status", "vehicled/ev/link", "vehicled/ev/speed") == [
          "vehicled/pi/status offline", "vehicled/ev/link down", "vehicled/ev/speed None",
        ])
    }

    @Test func `events wait for the broker, also while the bridge is restarted`() throws {
      let rig = try Rig()
      let (_, _) = try rig.ev()
      let bridge = try Bridge(rig)
      try bridge.start()
      #expect(bridge.logs("connected to \(rig.socket)"))
      #expect(bridge.logs("cannot connect to mqtt://127.0.0.1:\(bridge.port): connection refused; check that the broker runs"))
      try rig.write("# empty\n")
      #expect(rig.vehiclectl("reload").status == 0)
      usleep(1_500_000)
      #expect(bridge.program?.end() == 0)
      try bridge.startBroker()
      try bridge.start()
      #expect(bridge.logs("by MQTT 5"))
      #expect(wait { bridge.messages("vehicled/pi/status") == ["vehicled/pi/status online"] })
      #expect(bridge.messages("vehicled/ev/#") == [], "a removed device leaves nothing")
    }

    @Test func `a value that keeps its meaning is sent after a restart without the car`() throws {
      let rig = try Rig()
      let (daemon, simulator) = try rig.ev()
      let bridge = try Bridge(rig)
      try bridge.start()
      #expect(bridge.logs("connected to \(rig.socket)"))
      // Without the broker, what is not sent within 10 s is stored.
      let search = ["-q", #""unit":"km"}"#, "\(rig.directory)/queue/queue.db-wal"]
      #expect(wait(seconds: 20) { rig.run("/usr/bin/grep", search).status == 0 })
      bridge.program?.end(SIGKILL)
      simulator.end(SIGKILL)
      daemon.end()
      _ = try rig.daemon()
      try bridge.startBroker()
      try bridge.start()
      #expect(wait { Double(bridge.value("odometer") ?? "") != nil }, "\(bridge.program?.stderr ?? "")")
      #expect(bridge.messages("vehicled/ev/odometer/attributes").first?.contains("\"time\":\"") == true)
      #expect(bridge.value("speed").map { $0 == "None" } ?? true && bridge.messages("vehicled/ev/link").first != "vehicled/ev/link up")
    }

    @Test func `a rejected topic holds up no other`() throws {
      let rig = try Rig()
      let ports = [try freePort(), try freePort()]
      let devices = zip(["ev", "other"], ports).map { "[device.\($0)]\nkind = \"obd\"\nlink = \"tcp:127.0.0.1:\($1)\"\n" }
      try rig.write(devices.joined())
      _ = try rig.daemon()
      let bridge = try Bridge(rig)
      try rig.write("topic readwrite #\ntopic deny vehicled/ev/event/#\n", to: "\(rig.directory)/acl")
      try bridge.startBroker("allow_anonymous true\nacl_file \(rig.directory)/acl\n")
      try bridge.start()
      #expect(bridge.logs("by MQTT 5") && bridge.logs("connected to \(rig.socket)"))
      let arguments = ["-h", "127.0.0.1", "-p", "\(bridge.port)", "-t", "vehicled/+/event/#", "-v"]
      let reader = try Program(Rig.python, Self.unblocked("/usr/bin/mosquitto_sub", arguments), in: rig.directory)
      // Each car causes an event when it is detected.
      _ = try rig.start("vehiclesim", ["obd", "--on", "tcp:127.0.0.1:\(ports[0])"])
      let text = "the broker rejects vehicled/ev/event/vehicle: not authorized; allow it for the bridge's user"
      #expect(bridge.logs(text, seconds: 40), "\(bridge.program?.stderr ?? "")")
      _ = try rig.start("vehiclesim", ["obd", "--on", "tcp:127.0.0.1:\(ports[1])"])
      #expect(wait(seconds: 40) { reader.stdout.contains("vehicled/other/event/vehicle {") }, "\(bridge.program?.stderr ?? "")")
      #expect(!reader.stdout.contains("vehicled/ev/"))
      reader.end()
    }

    @Test func `what another client writes neither fills the memory nor clears topics`() throws {
      let (bridge, _) = try bridge()
      #expect(wait { Double(bridge.value("speed") ?? "") != nil })
      let before = try bridge.peakMemory()
      try bridge.rig.write(String(repeating: "[", count: 2_000_000), to: "\(bridge.rig.directory)/large")
      let large = ["-h", "127.0.0.1", "-p", "\(bridge.port)", "-r", "-t", "homeassistant/device/vehicled_pi_x/config", "-f", "large"]
      #expect(bridge.rig.run("/usr/bin/mosquitto_pub", large).status == 0)
      let forged = #"{"avty":[{"t":"vehicled/pi/status"}],"cmps":{"a":{"p":"sensor","uniq_id":"a","stat_t":"vehicled/h2/status"}}}"#
      bridge.publish("vehicled/h2/status", "online", options: ["-r"])
      for device in ["evil", "vehicled_pi_y"] { bridge.publish("homeassistant/device/\(device)/config", forged, options: ["-r"]) }
      // The forged one that names this bridge is removed, after a restart at the latest.
      #expect(bridge.program?.end() == 0)
      try bridge.start()
      #expect(wait { bridge.messages("homeassistant/device/vehicled_pi_y/config") == [] })
      usleep(6_000_000)
      #expect(bridge.messages("vehicled/h2/status") == ["vehicled/h2/status online"])
      #expect(bridge.messages("homeassistant/device/evil/config").count == 1)
      #expect(wait { Double(bridge.value("speed") ?? "") != nil } && bridge.program?.isRunning == true)
      #expect(try bridge.peakMemory() - before < 90_000)
    }

    @Test func `without Home Assistant a removed device leaves nothing either, nor does another prefix`() throws {
      let (bridge, _) = try bridge("home-assistant = false")
      #expect(wait { Double(bridge.value("speed") ?? "") != nil && Double(bridge.value("odometer") ?? "") != nil })
      // The topics are stored every 2 s.
      usleep(3_000_000)
      bridge.program?.end(SIGKILL)
      try bridge.rig.write("# empty\n")
      #expect(bridge.rig.vehiclectl("reload").status == 0)
      try bridge.start("home-assistant = false\nprefix = \"cars\"")
      #expect(wait { bridge.messages("vehicled/#") == [] })
      #expect(wait { bridge.messages("cars/#") == ["cars/pi/status online"] })
    }

    @Test func `a device that was removed while the bridge did not run leaves nothing`() throws {
      let (bridge, _) = try bridge()
      #expect(wait { Double(bridge.value("speed") ?? "") != nil && Double(bridge.value("odometer") ?? "") != nil })
      #expect(bridge.program?.end() == 0)
      try bridge.rig.write("# empty\n")
      #expect(bridge.rig.vehiclectl("reload").status == 0)
      try bridge.start()
      #expect(wait { bridge.messages("homeassistant/#", "vehicled/ev/#") == [] })
      #expect(bridge.messages("vehicled/pi/status") == ["vehicled/pi/status online"])
    }

    @Test func `a command that arrives before the daemon runs is read as soon as it does`() throws {
      let rig = try Rig()
      let (daemon, _) = try rig.ev()
      daemon.end()
      let bridge = try Bridge(rig)
      try bridge.startBroker()
      try bridge.start("control = [\"ev.*\"]")
      #expect(bridge.logs("by MQTT 5"))
      bridge.publish("vehicled/ev/nothing/set", "5")
      bridge.publish("vehicled/other/speed/set", "5")
      _ = try rig.daemon()
      #expect(bridge.logs("command rejected: ev has no property nothing"))
      #expect(bridge.program?.stderr.contains("there is no device") == false)
      #expect(bridge.logs("command rejected: other.speed is not allowed"))
    }

    @Test func `a rejected password, an untrusted certificate and a forbidden topic are named`() throws {
      let rig = try Rig()
      let (_, _) = try rig.ev()
      let bridge = try Bridge(rig)
      let password = "\(rig.directory)/password"
      try rig.write("wrong\n", to: password)
      chmod(password, 0o600)
      #expect(rig.run("/usr/bin/mosquitto_passwd", ["-c", "-b", "\(rig.directory)/passwords", "car", "right"]).status == 0)
      let authorized = "password_file \(rig.directory)/passwords\n"
      try bridge.startBroker(authorized)
      try bridge.start("user = \"car\"\npassword-file = \"\(password)\"")
      #expect(
        bridge.logs("rejects the user name or password; check user and password-file") || bridge.logs("does not authorize the connection"))
      bridge.program?.end()
      bridge.endBroker()

      // The user may only publish its status.
      try rig.write("right\n", to: password)
      chmod(password, 0o600)
      try rig.write("user car\ntopic readwrite vehicled/pi/#\n", to: "\(rig.directory)/acl")
      try bridge.startBroker(authorized + "acl_file \(rig.directory)/acl\n")
      try bridge.start("user = \"car\"\npassword-file = \"\(password)\"")
      #expect(bridge.logs("not authorized; allow it for the bridge's user"), "\(bridge.program?.stderr ?? "")")
      usleep(1_500_000)
      #expect(bridge.program?.isRunning == true)
      #expect(bridge.program?.stderr.components(separatedBy: "not authorized").count ?? 9 <= 3, "not logged for each topic")
      bridge.program?.end()
      bridge.endBroker()

      let files = ["\(rig.directory)/key.pem", "\(rig.directory)/certificate.pem"]
      #expect(
        rig.run(
          "/usr/bin/openssl",
          [
            "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
            "subjectAltName=DNS:localhost",
            "-keyout", files[0], "-out", files[1],
          ]
        ).status == 0)
      try bridge.startBroker("allow_anonymous true\nkeyfile \(files[0])\ncertfile \(files[1])\n")
      try bridge.start(broker: "mqtts://localhost:\(bridge.port)")
      #expect(bridge.logs("TLS failed: certificate verify failed"), "\(bridge.program?.stderr ?? "")")
      bridge.program?.end()
      try bridge.start("ca-file = \"\(files[1])\"", broker: "mqtts://localhost:\(bridge.port)")
      #expect(bridge.logs("connected to mqtts://localhost:\(bridge.port) by MQTT 5"), "\(bridge.program?.stderr ?? "")")
    }

    @Test func `the topics of the example for evcc have values that evcc reads`() throws {
      let (bridge, _) = try bridge()
      let document = try String(contentsOf: Documents.root.appendingPathComponent("docs/mqtt.md"), encoding: .utf8)
      let topics = document.matches(of: /topic: (vehicled\/ev\/\S+)/).map { String($0.1) }
      #expect(topics.count == 4)
      // evcc reads numbers with strconv.ParseFloat, and bools with strconv.ParseBool. Not every car provides the last two.
      let pattern = /-?\d+(\.\d+)?|true|false/
      for topic in topics.prefix(2) {
        let name = String(topic.dropFirst("vehicled/ev/".count))
        #expect(wait { bridge.value(name)?.wholeMatch(of: pattern) != nil }, "\(topic): \(bridge.value(name) ?? "no message")")
      }
    }

    @Test func `a broker without MQTT 5 is used by MQTT 3.1.1`() throws {
      let rig = try Rig()
      let (_, _) = try rig.ev()
      let bridge = try Bridge(rig)
      try rig.write(
        """
        listeners:
          default:
            type: tcp
            bind: 127.0.0.1:\(bridge.port)
        plugins:
          amqtt.plugins.authentication.AnonymousAuthPlugin:
            allow_anonymous: true
        """, to: "\(rig.directory)/amqtt.yaml")
      let broker = try Program(Rig.python, ["-m", "amqtt.scripts.broker_script", "-c", "\(rig.directory)/amqtt.yaml"], in: rig.directory)
      defer { broker.end(SIGKILL) }
      try bridge.start()
      // The broker does not reply to MQTT 5. The bridge waits twice for 10 s.
      #expect(bridge.logs("by MQTT 3.1.1", seconds: 40), "\(bridge.program?.stderr ?? "") \(broker.stderr)")
      #expect(wait { Double(bridge.value("speed") ?? "") != nil }, "\(bridge.program?.stderr ?? "") \(broker.stderr.suffix(3000))")
    }

    @Test func `batches for a fleet are read by the reference decoder`() throws {
      let (bridge, _) = try bridge("[fleet]\ntenant = \"acme\"\nvehicle = \"van-17\"\nbatch = 2")
      let rig = bridge.rig
      var samples: [[String: Any]] = []
      for (index, line) in bridge.messages("fleet/v1/acme/van-17/b", seconds: 30, options: ["-C", "5", "-F", "%x"]).enumerated() {
        let digits = Array(line.utf8)
        let bytes = stride(from: 0, to: digits.count - 1, by: 2).compactMap {
          UInt8(String(decoding: digits[$0..<($0 + 2)], as: UTF8.self), radix: 16)
        }
        try Data(bytes).write(to: URL(fileURLWithPath: "\(rig.directory)/batch-\(index)"))
        let outcome = rig.run(
          Rig.python, [Documents.root.appendingPathComponent("etc/fleet/decode.py").path, "\(rig.directory)/batch-\(index)"])
        try #require(outcome.status == 0, "\(outcome.errors)")
        samples += try outcome.output.split(separator: "\n").compactMap {
          try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any]
        }
      }
      let speeds = samples.filter { $0["property"] as? String == "speed" && $0["value"] is Double }
      #expect(speeds.count >= 4 && speeds.allSatisfy { $0["unit"] as? String == "km/h" }, "\(samples.prefix(5))")
    }

    @Test func `batches stay in the queue while nobody reads them`() throws {
      let (bridge, _) = try bridge("[fleet]\ntenant = \"acme\"\nbatch = 1")
      #expect(bridge.logs("the broker has no subscriber for batches; they stay in the queue"))
      #expect(wait { Double(bridge.value("speed") ?? "") != nil }, "values are published meanwhile")
      #expect(bridge.program?.end() == 0)
      #expect(bridge.rig.run("/usr/bin/grep", ["-rq", "fleet/v1/acme/pi/b", "\(bridge.rig.directory)/queue"]).status == 0)
    }

    @Test func `the programs that receive batches pass their tests`() throws {
      let rig = try Rig()
      let test = Documents.root.appendingPathComponent("Tests/Fleet/test_fleet.py").path
      let program = try Program(Rig.python, Self.unblocked(Rig.python, [test]), in: rig.directory)
      #expect(program.status(within: 300) == 0, "\(program.stderr.suffix(3000))")
    }

    @Test func `mistakes in the configuration end the start with their place`() throws {
      let rig = try Rig()
      let path = "\(rig.directory)/mqtt.toml"
      for (keys, text) in [
        ("broker = \"http://x\"", ":2:10: broker: \"http://x\" is not the URL of a broker; use mqtt://HOST"),
        ("brokr = \"x\"", "did you mean broker?"), ("interval = 0", "interval: "),
        ("prefix = \"a/#\"", "prefix: \"a/#\" cannot be part of a topic"),
        ("control = [\"a b\"]", "is not a name or pattern"), ("certificate = \"/x\"", "certificate and key belong together"),
      ] {
        try rig.write("[mqtt]\n\(keys)\n", to: path)
        let outcome = rig.run("\(Rig.programs)/vehicled-mqtt", ["--config", path, "--check-config"])
        #expect(outcome.status == 2 && outcome.errors.contains(text), "\(outcome)")
      }
      try rig.write("[mqtt]\nuser = \"a\"\npassword-file = \"\(rig.directory)\"\n", to: path)
      let outcome = rig.run("\(Rig.programs)/vehicled-mqtt", ["--config", path, "--state", "\(rig.directory)/queue"])
      #expect(outcome.status == 2 && outcome.errors.contains("password-file: \(rig.directory) is not a regular file"), "\(outcome)")
    }

    @Test func `a second instance with the same queue ends with an error`() throws {
      let (bridge, _) = try bridge()
      let outcome = bridge.rig.run(
        "\(Rig.programs)/vehicled-mqtt", ["--config", "\(bridge.rig.directory)/mqtt.toml", "--state", "\(bridge.rig.directory)/queue"])
      #expect(outcome.status == 1 && outcome.errors.contains("in use by another vehicled-mqtt"), "\(outcome)")
    }
  }
}
