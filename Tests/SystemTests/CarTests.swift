// End to end: a simulated car, the real daemon and the real client.

import Foundation
import Testing

extension WholeHouse {
  @Suite("A simulated car") struct CarTests {
    @Test func `is polled over TCP and has correct values`() throws {
      let house = try House()
      let (daemon, _) = try house.ev()
      #expect(wait { house.get("rpm") != nil })
      let values = try #require(
        house.vehiclectl("get", "--json", "ev.rpm", "battery-voltage", "inverter-voltage", "request").json()["readings"] as? [[String: Any]]
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
      let house = try House()
      let simulator = try house.simulator(on: "pty")
      try house.write("[device.ev]\nkind = \"obd\"\nlink = \"\(simulator.link)\"\n")
      let daemon = try house.daemon()
      #expect(wait { house.get("ev.battery-voltage") != nil })
      #expect(daemon.isRunning)
    }

    @Test func `of an older model answers another request, which is stored`() throws {
      let house = try House()
      let (daemon, _) = try house.ev("--car", "ioniq-28")
      #expect(wait { house.get("request") == "2101" })
      #expect(wait { house.get("battery-voltage") != nil })
      #expect(daemon.end() == 0)
      let stored = try String(contentsOfFile: "\(house.directory)/state/devices/ev/request", encoding: .utf8)
      #expect(stored == "2101")
    }

    @Test func `is watched as JSON lines`() throws {
      let house = try House()
      let (_, _) = try house.ev()
      #expect(wait { house.get("rpm") != nil })
      let lines = house.vehiclectl("watch", "--count", "30", "ev.battery-current", "ev.rpm", "polls").lines
      #expect(lines.count == 30)
      for line in lines {
        let object = try #require(JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
        #expect(object["device"] as? String == "ev" || object["event"] != nil)
      }
    }

    @Test func `answers a raw query between polls`() throws {
      let house = try House()
      let (_, _) = try house.ev()
      #expect(wait { house.get("rpm") != nil })
      let outcome = house.vehiclectl("do", "ev.query", "010C")
      #expect(outcome.status == 0, "\(outcome.errors)")
      #expect(outcome.output.contains("7E8"))
      #expect(outcome.output.contains("41 0C"))
      let refused = house.vehiclectl("do", "ev.query", "2E0101FF")
      #expect(refused.status == 1)
      #expect(refused.errors.contains("allow-raw"))
      #expect(wait { house.get("rpm") != nil })
    }

    @Test func `is polled again after the adapter restarts`() throws {
      let house = try House()
      let (daemon, simulator) = try house.ev()
      #expect(wait { house.get("rpm") != nil })
      let port = simulator.printed.split(separator: "\n")[0].split(separator: ":").last.map(String.init) ?? ""
      simulator.end(SIGKILL)
      #expect(wait { house.vehiclectl("get", "rpm").status == 5 })
      let again = try house.simulator(on: "tcp:127.0.0.1:\(port)")
      #expect(wait(seconds: 15) { house.get("rpm") != nil })
      #expect(again.program.isRunning && daemon.isRunning)
    }

    @Test func `is disconnected once by a fault with a start time`() throws {
      let house = try House()
      let (daemon, simulator) = try house.ev("-v", "--fault", "disconnect:@2")
      #expect(wait { house.get("rpm") != nil })
      #expect(wait { simulator.complaints.contains("client 2: up") })
      // Polls of three seconds.
      let polls = { Int(house.get("polls") ?? "") ?? 0 }
      let before = polls()
      #expect(wait { polls() >= before + 60 })
      #expect(!simulator.complaints.contains("client 2: down") && simulator.complaints.contains("client 1: down"))
      #expect(house.get("rpm") != nil)
      #expect(daemon.isRunning)
    }

    @Test func `can be replayed from a recording`() throws {
      let house = try House()
      let (daemon, _) = try house.ev("--seed", "7")
      #expect(wait { house.get("rpm") != nil })
      let recorder = try Program(
        "\(House.programs)/vehiclectl", ["--socket", house.socket, "record", "ev", "\(house.directory)/ride.ndjson"], in: house.directory)
      // In the middle of the ride: what the adapter needs to be ready is in the recording all the same. It plays slowly, for long enough
      // to be looked at on a busy machine, too.
      let polls = { Int(house.get("polls") ?? "") ?? 0 }
      let before = polls()
      #expect(wait { polls() >= before + 30 })
      #expect(recorder.end(SIGINT) == 0)
      #expect(daemon.end() == 0)
      let text = try String(contentsOfFile: "\(house.directory)/ride.ndjson", encoding: .utf8)
      #expect(text.hasPrefix("{") && text.contains("\"kind\":\"obd\""))
      try house.write("[device.ev]\nkind = \"obd\"\nlink = \"replay:\(house.directory)/ride.ndjson?speed=0.3\"\n")
      let player = try house.daemon()
      #expect(wait { house.get("battery-voltage") != nil })
      // It lasts as long as the 30 polls took, divided by the speed.
      #expect(wait(seconds: 60) { house.vehiclectl("status", "ev").output.contains("the recording has ended") })
      #expect(player.isRunning)
    }

    @Test func `is recorded automatically if configured`() throws {
      let house = try House()
      let (daemon, _) = try house.ev(options: "record = true")
      #expect(wait { house.get("rpm") != nil })
      // The file is written while the daemon runs, not only at its end.
      let folder = "\(house.directory)/state/recordings/ev"
      #expect(wait { !((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []).isEmpty })
      #expect(daemon.end() == 0)
      let files = try FileManager.default.contentsOfDirectory(atPath: "\(house.directory)/state/recordings/ev")
      #expect(files.count == 1)
      let text = try String(contentsOfFile: "\(house.directory)/state/recordings/ev/\(files[0])", encoding: .utf8)
      #expect(text.contains("\"dir\":\"tx\"") && text.contains("\"dir\":\"rx\""))
    }
  }
}
