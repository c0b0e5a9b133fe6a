// The RC car end to end: vehiclesim simulates the car with its flaws; the daemon, its guardian and vehiclectl are real. The wheels
// must stop however the driver ends.

import Foundation
import Testing

extension EndToEnd {
  @Suite("RC car") struct RCCarTests {
    /// A simulated car that is ready to be driven.
    private struct CarRig {
      let rig: Rig
      let car: Program
      let daemon: Program

      init(_ arguments: String..., options: String = "", ready: Bool = true) throws {
        rig = try Rig()
        car = try Program(
          "\(Rig.programs)/vehiclesim", ["rc-car", "--on", "tcp:127.0.0.1:0", "--restart", "0.5", "-v"] + arguments, in: rig.directory)
        let car = car
        try #require(wait { car.stdout.contains("\n") }, "the simulator prints nothing: \(car.stderr)")
        let link = car.stdout.split(separator: "\n").first.map(String.init) ?? ""
        try rig.write("[device.car]\nkind = \"rc-car\"\nlink = \"\(link)\"\n\(options)\n")
        daemon = try rig.daemon()
        let setup = self
        if ready { try #require(wait { setup.isReady }, "\(rig.vehiclectl("status").output)") }
      }

      /// The car requests tilt after its modes; it is not driven before.
      var isReady: Bool { rig.get("car.connected") == "on" && rig.get("car.tilt-rate") != nil }

      /// The lines that the simulator logged with this prefix, in order.
      func lines(_ what: String) -> [Substring] {
        car.stderr.split(separator: "\n").filter { $0.hasPrefix("vehiclesim: \(what)") }.map { $0.dropFirst(12 + what.count) }
      }

      /// The speeds of the motors, left and right, in %, or nil if they never turned.
      var motors: Substring? { lines("car: motors ").last }

      /// The number of Stop frames that it received.
      var stops: Int { lines("client 1: < ").count { $0.contains(#"Stop#$#%^%"#) } }

      func driving(deadline: Int = 5000) throws -> Program {
        try Program(
          "\(Rig.programs)/vehiclectl", ["--socket", rig.socket, "drive", "car", "--deadline", "\(deadline)"], in: rig.directory,
          input: "")
      }
    }

    private static let ahead = #"{"roll": 0.4, "pitch": 0, "yaw": 0}"#

    @Test(arguments: [
      "hangs up", "dies", "stalls", "falls silent", "is stopped by another", "loses the link", "loses the daemon", "finds it killed",
      "finds it frozen",
    ])
    func `the wheels stop when the driver`(_ end: String) throws {
      let setup = try CarRig()
      let (rig, daemon) = (setup.rig, setup.daemon)
      let driver = try setup.driving()
      #expect(driver.feed(Self.ahead) { setup.motors == "50.96 50.96" }, "\(driver.stderr)")
      #expect(driver.feed(Self.ahead) { rig.get("car.roll") == "0.4" && rig.get("car.running") == "on" })
      let stops = setup.stops
      switch end {
      case "hangs up": driver.closeInput()
      case "dies": driver.end(SIGKILL)
      case "stalls": driver.signal(SIGSTOP)
      case "falls silent": break
      case "is stopped by another": #expect(rig.vehiclectl("do", "car.stop").status == 0)
      case "loses the link": #expect(rig.vehiclectl("disconnect", "car").status == 0)
      case "loses the daemon": #expect(daemon.end() == 0)
      case "finds it killed": daemon.end(SIGKILL)
      default: daemon.signal(SIGSTOP)
      }
      #expect(wait { setup.motors == "0.00 0.00" }, "\(end): \(setup.motors ?? "-")")
      // Stop is repeated: a car that read the first one behind a tilt gets another.
      #expect(wait { setup.stops >= stops + 2 }, "\(end): \(setup.lines("client 1: < ").suffix(5))")
      driver.signal(SIGCONT)
      daemon.signal(SIGCONT)
      if end == "is stopped by another" {
        // Setpoints alone do not restart a car that another client has stopped; the driver's Continue does.
        #expect(driver.feed(Self.ahead) { rig.get("car.running") == "off" } && setup.motors == "0.00 0.00")
        driver.writeInput(#"{"do": "continue"}"# + "\n")
        #expect(driver.feed(Self.ahead) { setup.motors == "50.96 50.96" })
        driver.closeInput()
        #expect(wait { setup.motors == "0.00 0.00" })
      }
      #expect(wait { !driver.isRunning })
      if !daemon.isRunning {
        // The guardian has also disconnected: the car's program has restarted and serves the next daemon.
        let next = try rig.daemon()
        #expect(wait(seconds: 20) { rig.get("car.connected") == "on" })
        #expect(next.isRunning)
      } else if end == "loses the link" {
        #expect(setup.lines("car: frame ").contains("Disconnect"))
        #expect(rig.vehiclectl("connect", "car").status == 0)
        #expect(wait(seconds: 20) { rig.get("car.connected") == "on" })
      } else {
        #expect(wait { setup.isReady && rig.get("car.running") == "off" })
        let again = try setup.driving()
        #expect(again.feed(#"{"roll": 0.4, "pitch": 0.2}"#) { setup.motors == "52.93 21.68" }, "\(again.stderr)")
        again.closeInput()
        #expect(wait { setup.motors == "0.00 0.00" })
      }
    }

    /// In these modes the car drops frames that it reads together with Continue, and it ignores frames in the first seconds of mode 10.
    @Test(arguments: [("10", "", "dies"), ("10", "", "loses the daemon"), ("10", "", "finds it killed"), ("5", "lag:1:900", "dies")])
    func `a self-driving car is stopped even if it drops frames`(_ mode: String, _ fault: String, _ end: String) throws {
      let setup = try fault.isEmpty ? CarRig() : CarRig("--fault", fault)
      let rig = setup.rig
      #expect(rig.vehiclectl("set", "car.mode", mode).status == 0)
      // The car ignores frames while its camera starts: the driver gets the lease, and Continue is queued.
      let early = rig.vehiclectl("drive", "car", "--deadline", "5000", input: Self.ahead + "\n")
      #expect(early.status == 0, "\(early.errors)")
      #expect(wait(seconds: 15) { rig.vehiclectl("drive", "car", input: Self.ahead + "\n").status == 0 })
      // The lease is revoked if the car takes long to respond after the change of the mode.
      var driver = try setup.driving()
      let isDriven = wait(seconds: 40) {
        if !driver.isRunning, let next = try? setup.driving() { driver = next }
        return driver.feed(Self.ahead) {
          setup.motors == "17.00 17.00" || !fault.isEmpty && setup.lines("client 1: < ").contains { $0.contains("Continue") }
        }
      }
      try #require(isDriven, "\(driver.stderr) \(setup.lines("car: ").suffix(8))")
      switch end {
      case "loses the daemon": #expect(setup.daemon.end() == 0)
      case "finds it killed": setup.daemon.end(SIGKILL)
      default: driver.end(SIGKILL)
      }
      #expect(wait(seconds: 15) { setup.motors == "0.00 0.00" }, "\(setup.lines("car: ").suffix(8))")
      usleep(3_500_000)
      #expect(setup.motors == "0.00 0.00", "\(setup.lines("car: ").suffix(8))")
    }

    /// The kernel acknowledges data for a hanging program, and the car keeps its last speed.
    @Test func `a hanging program of the car is detected`() throws {
      let setup = try CarRig("--fault", "lag:@\(isSanitized ? 20 : 5):12000")
      let driver = try setup.driving()
      #expect(driver.feed(Self.ahead) { setup.motors == "50.96 50.96" }, "\(driver.stderr)")
      #expect(driver.feed(Self.ahead) { !driver.isRunning })
      #expect(driver.stderr.contains("its program may have hung"), "\(driver.stderr)")
      let rig = setup.rig
      let stop = rig.vehiclectl("do", "car.stop")
      #expect(stop.status == 1 && stop.errors.contains("not confirmed: the car may still be driving"), "\(stop.errors)")
      #expect(wait { rig.get("car.running") == nil && rig.vehiclectl("status").output.contains("may still be driving") })
      #expect(rig.vehiclectl("doctor").output.contains("may still be driving"))
      #expect(wait(seconds: 20) { setup.motors == "0.00 0.00" && rig.get("car.running") == "off" })
    }

    /// A status request keeps the car busy for a second; the daemon also sends one every 30 s.
    @Test func `a lease that begins during a status request is not lost`() throws {
      let setup = try CarRig()
      let refresh = try setup.rig.start("vehiclectl", ["--socket", setup.rig.socket, "do", "car.refresh"])
      #expect(wait { setup.lines("client 1: < ").contains { $0.hasPrefix("Status") } })
      let driver = try Program(
        "\(Rig.programs)/vehiclectl", ["--socket", setup.rig.socket, "drive", "car", "--deadline", "500"],
        in: setup.rig.directory, input: "")
      #expect(driver.feed(Self.ahead) { setup.motors == "50.96 50.96" }, "\(driver.stderr)")
      #expect(refresh.status(within: 10) == 0)
      driver.closeInput()
      #expect(wait { setup.motors == "0.00 0.00" })
    }

    @Test func `an out-of-range setpoint sets the exit status`() throws {
      let setup = try CarRig()
      let outcome = setup.rig.vehiclectl("drive", "car", "--deadline", "5000", input: #"{"roll": 9, "pitch": 0}"# + "\n")
      #expect(outcome.status == 2 && outcome.errors.contains("roll"), "\(outcome.status) \(outcome.errors)")
    }

    /// When memory runs out, the kernel must kill the daemon before the guardian.
    @Test func `the daemon has a higher OOM score than its guardian`() throws {
      let setup = try CarRig()
      let daemon = setup.daemon.pid
      // Any thread may have started it.
      let children = try FileManager.default.contentsOfDirectory(atPath: "/proc/\(daemon)/task").flatMap {
        ((try? String(contentsOfFile: "/proc/\(daemon)/task/\($0)/children", encoding: .utf8)) ?? "").split(separator: " ")
      }
      let guardian = try #require(
        children.first { (try? String(contentsOfFile: "/proc/\($0)/cmdline", encoding: .utf8))?.contains("--guardian") == true })
      func score(_ pid: String) throws -> Int? {
        Int(try String(contentsOfFile: "/proc/\(pid)/oom_score_adj", encoding: .utf8).trimmingCharacters(in: .newlines))
      }
      let (ours, its) = (try score("\(daemon)"), try score(String(guardian)))
      #expect(ours != nil && its != nil && (ours ?? 0) > (its ?? 0), "\(ours ?? 0) and \(its ?? 0)")
    }

    @Test func `a neutral position does not move the car`() throws {
      let setup = try CarRig()
      let rig = setup.rig
      #expect(rig.vehiclectl("set", "car.neutral-roll", "-0.6").status == 0)
      let driver = try setup.driving()
      #expect(
        driver.feed(#"{"roll": 0, "pitch": 0, "relative": true}"#) { rig.get("car.running") == "on" && rig.get("car.roll") == "0" })
      let outcome = rig.vehiclectl("set", "car.neutral-roll", "0.5")
      #expect(driver.feed(#"{"roll": 0, "pitch": 0, "relative": true}"#) { true })
      #expect(outcome.status == 1 && outcome.errors.contains("the car is being driven"), "\(outcome.errors)")
      #expect(setup.motors ?? "0.00 0.00" == "0.00 0.00")
      driver.closeInput()
      #expect(wait { !driver.isRunning })
    }

    @Test func `modes are selected by name or number, and a mode change stops the car`() throws {
      let setup = try CarRig()
      let rig = setup.rig
      #expect(wait { rig.get("car.mode") == "Tilt Steering" })
      let driver = try setup.driving()
      #expect(driver.feed(Self.ahead) { setup.motors == "50.96 50.96" })
      #expect(rig.vehiclectl("set", "car.mode", "tilt, lights").status == 0)
      #expect(setup.motors == "0.00 0.00" && rig.get("car.mode-number") == "1")
      driver.closeInput()
      #expect(wait { rig.get("car.buttons-enabled") == "on" })
      #expect(rig.vehiclectl("set", "car.left-button", "on").status == 0)
      #expect(wait { setup.lines("car: frame ").contains("LeftButtonTouchDown") })
      #expect(rig.vehiclectl("set", "car.left-button", "off").status == 0)
      #expect(rig.vehiclectl("set", "car.mode", "7").status == 0 && rig.get("car.mode") == "Traffic light")
      let outcome = rig.vehiclectl("set", "car.mode", "Fly")
      #expect(outcome.status == 2 && outcome.errors.contains("Tilt Steering"), "\(outcome.errors)")
      let table = rig.vehiclectl("do", "car.mode-info")
      #expect(table.status == 0 && table.output.contains("Self steering") && table.lines.count > 11, "\(table.output)\(table.errors)")
      let message = rig.vehiclectl("do", "car.send-message", "hello")
      #expect(message.status == 1 && message.errors.contains("allow-messages"), "\(message.errors)")
    }

    @Test func `the status and the messages of the car are published`() throws {
      let setup = try CarRig("--fault", "warn", "--fault", "ansi")
      let rig = setup.rig
      let watch = try rig.start("vehiclectl", ["--socket", rig.socket, "watch", "--json"])
      #expect(rig.vehiclectl("do", "car.refresh").status == 0)
      #expect(wait { Double(rig.get("car.motor-battery-voltage") ?? "") ?? 0 > 5 && rig.get("car.temperature") != nil })
      #expect(wait { rig.get("car.message")?.contains("temperatur is over 80") == true })
      #expect(wait { watch.stdout.contains(#""event":"message""#) })
      #expect(setup.daemon.stderr.contains("temperatur is over 80"))
      #expect(Double(rig.get("car.cpu-usage") ?? "") != nil)
    }

    @Test func `a malformed status is published as far as it is valid`() throws {
      let setup = try CarRig("--fault", "odd-status")
      let rig = setup.rig
      #expect(rig.vehiclectl("do", "car.refresh").status == 0)
      #expect(wait { rig.get("car.wheel-speed") == "0.55" && rig.get("car.fan") == "on" })
      let raw = rig.vehiclectl("get", "car.motor-battery-voltage")
      #expect(raw.status != 0 && raw.errors.contains("invalid value \"V\""), "\(raw.errors)")
    }

    @Test func `camera pictures are saved while the car accepts commands`() throws {
      let setup = try CarRig()
      let rig = setup.rig
      let file = "\(rig.directory)/picture.jpg"
      let early = rig.vehiclectl("camera", "snapshot", file)
      #expect(early.status == 1 && early.errors.contains("video on"), "\(early.errors)")
      #expect(rig.vehiclectl("set", "car.video-quality", "low").status == 0)
      let on = rig.vehiclectl("set", "car.video", "on")
      #expect(on.status == 0 && rig.get("car.video") == "on", "\(on.errors)")
      // The first frame was fetched: the car reads commands again.
      #expect(rig.vehiclectl("do", "car.stop").status == 0)
      #expect(wait { setup.lines("car: frame ").suffix(2).contains("Stop") })
      #expect(rig.vehiclectl("camera", "snapshot", file).status == 0)
      let picture = try Data(contentsOf: URL(fileURLWithPath: file))
      #expect(picture.starts(with: [0xFF, 0xD8]) && picture.suffix(2) == Data([0xFF, 0xD9]) && picture.count > 500)
      let video = "\(rig.directory)/video.mjpeg"
      let record = rig.vehiclectl("camera", "record", "car", video, "--seconds", "2")
      #expect(record.status == 0, "\(record.errors)")
      let frames = try Data(contentsOf: URL(fileURLWithPath: video))
      #expect(frames.count > picture.count)
      #expect(rig.vehiclectl("web-page", "car").output.hasPrefix("http://127.0.0.1:"))
      #expect(rig.vehiclectl("set", "car.video", "off").status == 0)
      #expect(wait { setup.lines("car: ").contains("camera off") })
    }

    /// A car that another client holds must not be reported as stopped.
    @Test func `a car that another client holds is reported as silent and possibly driving`() throws {
      let setup = try CarRig("--fault", "held", ready: false)
      #expect(wait(seconds: 20) { setup.rig.vehiclectl("status", "car").output.contains("connected, but no response") })
      let stop = setup.rig.vehiclectl("do", "car.stop")
      #expect(stop.status == 1 && stop.errors.contains("not confirmed: the car may still be driving"), "\(stop.errors)")
      for name in ["running", "mode", "roll"] {
        let value = setup.rig.vehiclectl("get", "car.\(name)")
        #expect(value.status != 0 && value.output.isEmpty, "\(name): \(value.output)")
      }
      #expect(setup.rig.vehiclectl("get", "car.running").errors.contains("it may still be driving"))
      #expect(setup.rig.vehiclectl("status").output.split(separator: "\n").first?.contains("may still be driving") == true)
      let doctor = setup.rig.vehiclectl("doctor")
      #expect(doctor.status == 1 && doctor.output.contains("the car may still be driving"), "\(doctor.output)")
      let outcome = setup.rig.vehiclectl("drive", "car", input: Self.ahead + "\n")
      #expect(outcome.status != 0 && setup.motors == nil, "\(outcome.errors)")
    }

    @Test func `a car with the documented dialect is driven`() throws {
      let setup = try CarRig("--dialect", "documented", options: "dialect = \"documented\"")
      let driver = try setup.driving()
      #expect(driver.feed(Self.ahead) { setup.motors ?? "0.00 0.00" != "0.00 0.00" }, "\(driver.stderr)")
      #expect(setup.lines("client 1: < ").contains { $0.hasPrefix("Gyro#$#0.4") && $0.hasSuffix("%^%") })
      driver.end(SIGKILL)
      #expect(wait { setup.motors == "0.00 0.00" })
    }

    @Test(arguments: ["endless", "long-modes", "odd-gyro", "message-delimiters", "split", "coalesce", "comma", "lag:40:700"])
    func `a car with a fault is driven and stopped`(_ fault: String) throws {
      let setup = try CarRig("--fault", fault)
      let driver = try setup.driving()
      #expect(driver.feed(Self.ahead) { setup.motors == "50.96 50.96" }, "\(driver.stderr)")
      driver.closeInput()
      #expect(wait { setup.motors == "0.00 0.00" })
      #expect(setup.daemon.isRunning && setup.lines("client 2: up").isEmpty)
    }
  }
}
