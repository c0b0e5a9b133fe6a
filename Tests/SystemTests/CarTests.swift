// End to end: a simulated car, the real daemon and the real client.

import Foundation
import Testing

extension EndToEnd {
  @Suite("A simulated car") struct CarTests {
    @Test func `is polled over TCP and has correct values`() throws {
      let rig = try Rig()
      let (daemon, _) = try rig.ev()
      #expect(wait { rig.get("rpm") != nil })
      let values = try #require(
        rig.vehiclectl("get", "--json", "ev.rpm", "battery-voltage", "inverter-voltage", "request").json()["readings"] as? [[String: Any]]
      )
      #expect(values.map { $0["property"] as? String } == ["rpm", "battery-voltage", "inverter-voltage", "request"])
      let battery = try #require(values[1]["value"] as? Double)
      let inverter = try #require(values[2]["value"] as? Double)
      #expect(abs(battery - inverter) < 15)
      #expect(values[1]["unit"] as? String == "V")
      #expect(values[3]["value"] as? String == "220101")
      #expect(daemon.isRunning)
    }

    @Test func `is polled over a serial port`() throws {
      let rig = try Rig()
      let simulator = try rig.simulator(on: "pty")
      try rig.write("[device.ev]\nkind = \"obd\"\nlink = \"\(simulator.link)\"\n")
      let daemon = try rig.daemon()
      #expect(wait { rig.get("ev.battery-voltage") != nil })
      #expect(daemon.isRunning)
    }

    @Test func `of an older model answers another request, which is stored`() throws {
      let rig = try Rig()
      let (daemon, _) = try rig.ev("--car", "ioniq-28")
      #expect(wait { rig.get("request") == "2101" })
      #expect(wait { rig.get("battery-voltage") != nil })
      #expect(daemon.end() == 0)
      let stored = try String(contentsOfFile: "\(rig.directory)/state/devices/ev/request", encoding: .utf8)
      #expect(stored == "2101")
    }

    @Test func `is watched as JSON lines`() throws {
      let rig = try Rig()
      let (_, _) = try rig.ev()
      #expect(wait { rig.get("rpm") != nil })
      let lines = rig.vehiclectl("watch", "--count", "30", "ev.battery-current", "ev.rpm", "polls").lines
      #expect(lines.count == 30)
      for line in lines {
        let object = try #require(JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
        #expect(object["device"] as? String == "ev" || object["event"] != nil)
      }
    }

    @Test func `answers a raw query between polls`() throws {
      let rig = try Rig()
      let (_, _) = try rig.ev()
      #expect(wait { rig.get("rpm") != nil })
      let outcome = rig.vehiclectl("do", "ev.query", "010C")
      #expect(outcome.status == 0, "\(outcome.errors)")
      #expect(outcome.output.contains("7E8"))
      #expect(outcome.output.contains("41 0C"))
      let refused = rig.vehiclectl("do", "ev.query", "2E0101FF")
      #expect(refused.status == 1)
      #expect(refused.errors.contains("allow-raw"))
      #expect(wait { rig.get("rpm") != nil })
    }

    @Test func `is polled again after the adapter restarts`() throws {
      let rig = try Rig()
      let (daemon, simulator) = try rig.ev()
      #expect(wait { rig.get("rpm") != nil })
      let port = simulator.stdout.split(separator: "\n")[0].split(separator: ":").last.map(String.init) ?? ""
      simulator.end(SIGKILL)
      #expect(wait { rig.vehiclectl("get", "rpm").status == 5 })
      let again = try rig.simulator(on: "tcp:127.0.0.1:\(port)")
      #expect(wait(seconds: 15) { rig.get("rpm") != nil })
      #expect(again.program.isRunning && daemon.isRunning)
    }

    @Test func `is disconnected once by a fault with a start time`() throws {
      let rig = try Rig()
      let (daemon, simulator) = try rig.ev("-v", "--fault", "disconnect:@2")
      #expect(wait { rig.get("rpm") != nil })
      #expect(wait { simulator.stderr.contains("client 2: up") })
      // Polls of three seconds.
      let polls = { Int(rig.get("polls") ?? "") ?? 0 }
      let before = polls()
      #expect(wait { polls() >= before + 60 })
      #expect(!simulator.stderr.contains("client 2: down") && simulator.stderr.contains("client 1: down"))
      #expect(rig.get("rpm") != nil)
      #expect(daemon.isRunning)
    }

    @Test func `can be replayed from a recording`() throws {
      let rig = try Rig()
      let (daemon, _) = try rig.ev("--seed", "7")
      #expect(wait { rig.get("rpm") != nil })
      let recorder = try Program(
        "\(Rig.programs)/vehiclectl", ["--socket", rig.socket, "record", "ev", "\(rig.directory)/ride.ndjson"], in: rig.directory)
      // The recording starts during a session and contains the setup of the adapter all the same. It is replayed slowly, so that a busy
      // machine sees it as well.
      let polls = { Int(rig.get("polls") ?? "") ?? 0 }
      let before = polls()
      #expect(wait { polls() >= before + 30 })
      #expect(recorder.end(SIGINT) == 0)
      #expect(daemon.end() == 0)
      let text = try String(contentsOfFile: "\(rig.directory)/ride.ndjson", encoding: .utf8)
      #expect(text.hasPrefix("{") && text.contains("\"kind\":\"obd\""))
      try rig.write("[device.ev]\nkind = \"obd\"\nlink = \"replay:\(rig.directory)/ride.ndjson?speed=0.3\"\n")
      let player = try rig.daemon()
      #expect(wait { rig.get("battery-voltage") != nil })
      // It lasts as long as the 30 polls took, divided by the speed.
      #expect(wait(seconds: 60) { rig.vehiclectl("status", "ev").output.contains("the recording has ended") })
      #expect(player.isRunning)
    }

    @Test func `is recorded automatically if configured`() throws {
      let rig = try Rig()
      let (daemon, _) = try rig.ev(options: "record = true")
      #expect(wait { rig.get("rpm") != nil })
      // The file is written while the daemon runs, not only at its end.
      let folder = "\(rig.directory)/state/recordings/ev"
      #expect(wait { !((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []).isEmpty })
      #expect(daemon.end() == 0)
      let files = try FileManager.default.contentsOfDirectory(atPath: "\(rig.directory)/state/recordings/ev")
      #expect(files.count == 1)
      let text = try String(contentsOfFile: "\(rig.directory)/state/recordings/ev/\(files[0])", encoding: .utf8)
      #expect(text.contains("\"dir\":\"tx\"") && text.contains("\"dir\":\"rx\""))
    }
  }
}
