// Diagnostics of the daemon: metrics for Prometheus, bug reports, the doctor and the log level.

import Foundation
import Testing

extension EndToEndServices {
  @Suite("Maintenance") struct MaintenanceTests {
    private static let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().path

    @Test func `Prometheus can parse the metrics`() throws {
      let rig = try Rig()
      _ = try rig.ev()
      #expect(wait { rig.get("battery-voltage") != nil })
      let file = "\(rig.directory)/vehicled.prom"
      #expect(rig.vehiclectl("metrics", "--output", file).status == 0)
      let text = try String(contentsOfFile: file, encoding: .utf8)
      let outcome = rig.run("/bin/sh", ["-c", "exec \"$0\" \"$1\" <\"$2\"", Rig.python, "\(Self.tests)/Peers/metrics.py", file])
      #expect(outcome.status == 0, "\(outcome.errors)\n\(text)")
      // node_exporter runs as another user and must see complete files only.
      let mode = try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions] as? Int
      #expect(mode == 0o644 && text.hasSuffix("# EOF\n"))
      let printed = rig.vehiclectl("metrics")
      #expect(printed.status == 0 && printed.output.contains("vehicled_build_info{version="))
      let json = try rig.vehiclectl("metrics", "--json").json()
      #expect((json["statistics"] as? [[String: Any]])?.contains { $0["name"] as? String == "vehicled_clients" } == true)
      #expect(rig.vehiclectl("metrics", "--json", "--output", file).output.isEmpty)
      #expect(try String(contentsOfFile: file, encoding: .utf8).hasPrefix("{\"readings\":["))
      #expect(rig.vehiclectl("metrics", "--output", "-").output.hasSuffix("# EOF\n"))
      #expect(rig.vehiclectl("bugreport", rig.directory, "--force").errors.contains("is a directory"))
    }

    @Test func `a bug report has diagnostics and no personal data`() throws {
      let rig = try Rig()
      _ = try rig.ev("--car", "petrol")
      #expect(wait { rig.get("vin") != nil })
      let vin = try #require(rig.get("vin"))
      let file = "\(rig.directory)/report.txt"
      let question = try rig.start("vehiclectl", ["--socket", rig.socket, "do", "ev.query", "0902"])
      #expect(rig.vehiclectl("bugreport", file, "--seconds", "2").status == 0)
      #expect(wait { !question.isRunning })
      let text = try String(contentsOfFile: file, encoding: .utf8)
      for part in [
        "== system ==", "== daemon ==", "== device ev ==", "== metrics ==", "== links of ev, ", "vehicled_calls_total", "rpm: ",
      ] {
        #expect(text.contains(part), "\(part)")
      }
      let hex = vin.utf8.map { String($0, radix: 16, uppercase: true) }.joined()
      #expect(text.contains("vin: …") && !text.contains(vin) && !text.contains(hex.prefix(12)) && text.contains("\"dir\":\"tx\""))
      let mode = try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions] as? Int
      #expect(mode == 0o600)
      // An existing file is not overwritten, and a symbolic link is not followed.
      let target = "\(rig.directory)/elsewhere"
      try FileManager.default.createSymbolicLink(atPath: "\(rig.directory)/link.txt", withDestinationPath: target)
      #expect(rig.vehiclectl("bugreport", file).status == 2 && rig.vehiclectl("bugreport", "\(rig.directory)/link.txt").status == 2)
      #expect(rig.vehiclectl("bugreport", "\(rig.directory)/link.txt", "--force", "--seconds", "1").status == 0)
      #expect(!FileManager.default.fileExists(atPath: target))
    }

    @Test func `a bug report to standard output is the only output`() throws {
      let rig = try Rig()
      try rig.write("")
      _ = try rig.daemon()
      for arguments in [["-"], ["-", "--json"]] {
        let report = rig.run(
          "\(Rig.programs)/vehiclectl", ["--socket", rig.socket, "bugreport", "--seconds", "1"] + arguments)
        #expect(report.status == 0 && report.output.hasPrefix("vehicled report "), "\(report.errors)")
        #expect(report.output.contains("\n== system ==\n") && !report.output.contains("\"bytes\""))
      }
      #expect(!FileManager.default.fileExists(atPath: "\(rig.directory)/-"))
    }

    @Test func `a recording does not follow a symbolic link`() throws {
      let rig = try Rig()
      _ = try rig.ev()
      let (target, link) = ("\(rig.directory)/precious", "\(rig.directory)/ride.ndjson")
      try rig.write("keep me", to: target)
      try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: target)
      for options in [[], ["--force"]] {
        let outcome = rig.run(
          "\(Rig.programs)/vehiclectl", ["--socket", rig.socket, "record", "ev", link, "--seconds", "1"] + options)
        #expect(outcome.status == 2, "\(outcome.errors)")
      }
      #expect(try String(contentsOfFile: target, encoding: .utf8) == "keep me")
    }

    @Test func `bugreport and doctor work without a daemon`() throws {
      let rig = try Rig()
      let file = "\(rig.directory)/report.txt"
      let outcome = rig.vehiclectl("bugreport", file)
      #expect(outcome.status == 0 && outcome.errors.contains("not running"))
      #expect(try String(contentsOfFile: file, encoding: .utf8).contains("failed   socket: \(rig.socket) does not exist"))
      let doctor = rig.vehiclectl("doctor")
      #expect(doctor.status == 3 && doctor.output.contains("\(rig.socket) does not exist") && doctor.output.contains("time: "))
      #expect(doctor.errors.isEmpty, "the finding is the message: \(doctor.errors)")
    }

    @Test func `the doctor reports a missing serial port and the free disk space`() throws {
      let rig = try Rig()
      try rig.write("[device.car]\nkind = \"obd\"\nlink = \"serial:/dev/ttyNone\"\n")
      _ = try rig.daemon()
      let doctor = rig.vehiclectl("doctor")
      #expect(doctor.status == 1 && doctor.output.contains(": down: no such file or directory; plug in the adapter"))
      #expect(doctor.output.split(separator: "\n").count { $0.contains("/dev/ttyNone") } == 1, "\(doctor.output)")
      #expect(doctor.output.contains(/ok +disk: .*state: \d+ MB free/), "\(doctor.output)")
    }

    @Test func `the doctor does not report a car that is switched off as a failure`() throws {
      let rig = try Rig()
      let (_, link) = try rig.simulator("--key", "off@6")
      try rig.write("[device.ev]\nkind = \"obd\"\nlink = \"\(link)\"\n")
      _ = try rig.daemon()
      #expect(wait { rig.get("ev.vin") != nil })
      #expect(wait(seconds: 60) { rig.vehiclectl("status", "ev").output.contains("car-asleep") })
      let doctor = rig.vehiclectl("doctor")
      #expect(doctor.status == 0 && doctor.output.contains(/ok +ev tcp:\S+: up, car-asleep: no response from the vehicle/), "\(doctor)")
    }

    @Test func `the doctor names the fix for a link and reports an unusable state directory`() throws {
      let rig = try Rig()
      try rig.write("[device.car]\nkind = \"obd\"\nlink = \"tcp:127.0.0.1:1\"\n")
      try rig.write("a file", to: "\(rig.directory)/state")
      _ = try rig.daemon()
      let doctor = rig.vehiclectl("doctor").output
      #expect(doctor.contains(/failed +disk: .*state is not a directory/) && doctor.contains("ok       bluetooth: "), "\(doctor)")
      #expect(doctor.contains(/failed +car tcp:127.0.0.1:1: .*; power on the device/), "\(doctor)")
    }

    @Test func `a recording client exits with status 3 when the daemon stops`() throws {
      let rig = try Rig()
      let (daemon, _) = try rig.ev()
      let recorder = try rig.start("vehiclectl", ["--socket", rig.socket, "record", "ev", "\(rig.directory)/ride.ndjson"])
      #expect(wait { (try? String(contentsOfFile: "\(rig.directory)/ride.ndjson", encoding: .utf8))?.contains("hex") == true })
      #expect(daemon.end() == 0)
      #expect(recorder.status(within: 10) == 3, "\(recorder.stderr)")
    }

    @Test func `check-config prints the number of devices and warnings`() throws {
      let rig = try Rig()
      let device = "kind = \"obd\"\nlink = \"tcp:127.0.0.1:1\"\n"
      try rig.write("[control]\nobserve = [\"nogroup-xyz\"]\n[device.a]\n\(device)[device.b]\n\(device)")
      let check = { rig.run("\(Rig.programs)/vehicled", ["--config", rig.configuration, "--check-config"]) }
      let warned = check()
      #expect(warned.status == 0 && warned.output == "ok: 2 devices\n", "\(warned)")
      #expect(warned.errors.hasPrefix("vehicled: warning: ") && warned.errors.contains("group nogroup-xyz"), "\(warned)")
      try rig.write("[device.a]\n\(device)")
      let silent = check()
      #expect(silent.output == "ok: 1 device\n" && silent.errors.isEmpty, "\(silent)")
    }

    @Test func `an empty socket path is rejected`() throws {
      let rig = try Rig()
      let outcome = rig.run("\(Rig.programs)/vehicled", ["--socket", "", "--config", "\(rig.directory)/vehicled.toml"])
      #expect(outcome.status == 64 && outcome.errors.contains("--socket is empty"), "\(outcome.errors)")
    }

    @Test func `the log level can be changed while the daemon runs`() throws {
      let rig = try Rig()
      let (daemon, _) = try rig.ev()
      #expect(rig.vehiclectl("log-level").output == "info\n")
      let before = daemon.stderr.contains(" debug ")
      #expect(rig.vehiclectl("log-level", "debug").output == "debug\n")
      let wrong = rig.vehiclectl("log-level", "chatty")
      #expect(wrong.status != 0 && wrong.errors.contains("use one of trace, debug"), "\(wrong.errors)")
      #expect(rig.vehiclectl("log-level", "--json").output == "{\"level\":\"debug\"}\n")
      #expect(!before && wait { daemon.stderr.contains("log level set to debug") })
    }
  }
}
