// The commands of the group History against a scripted service: output, JSON, errors with their remedies.

import Protocols
import Testing
import Varlink

@testable import vehiclectl

@Suite struct HistoryCommandTests {
  @Test func `trips are listed newest first, with a legend unless --quiet`() throws {
    let rig = try HistoryRig()
    defer { rig.stop() }
    let outcome = try rig.run("trips")
    let numbers = outcome.stdout.split(separator: "\n").compactMap {
      $0.split(separator: " ").first.flatMap { Int($0.prefix { $0.isASCII && $0.isNumber }) }
    }
    #expect(outcome.status == 0 && Array(numbers.prefix(3)) == [14, 13, 12], "\(outcome)")
    #expect(outcome.stdout.contains("3 trips:") && outcome.stdout.contains("interrupted: data is missing"))
    let quiet = try rig.run("trips", "-q", "-n", "1", "--device", "ev").stdout.split(separator: "\n")
    #expect(quiet.count == 2 && quiet[1].hasPrefix("  14"), "\(quiet)")
    #expect(try rig.run("charges").stdout.contains("76.2") && rig.run("parked").stderr == "no parked periods yet\n")
    #expect(try rig.run("trips", "--since", "2d", "--until", "3d").stderr.contains("--since is not before --until"))
  }

  @Test func `JSON is that of the service, newest first`() throws {
    let rig = try HistoryRig()
    defer { rig.stop() }
    let json = try #require(JSON(try rig.run("trips", "--json").stdout))
    guard case .array(let periods)? = json["periods"] else { throw Failure.other("no periods") }
    #expect(periods.map { $0["number"] } == [.int(14), .int(13), .int(12)] && periods[2]["energy"]?["bound"] == .float(0.1))
    let charge = try #require(JSON(try rig.run("charge", "--json").stdout))
    #expect(charge["period"]?["number"] == .int(15) && charge["curve"] != nil)
  }

  @Test func `a trip without a number is the latest`() throws {
    let rig = try HistoryRig()
    defer { rig.stop() }
    #expect(try rig.run("trip").stdout.hasPrefix("trip 14 of ev  Mon 23 Nov 2026 18:12–18:17 CET  open\n"))
    #expect(try rig.run("trip", "12").stdout.contains("5.62 ± 0.1 kWh"))
    let missing = try rig.run("trip", "99", "--json")
    #expect(
      missing.status == 4
        && missing.stderr == "vehiclectl: no trip, charge or parked period has the number 99; run \"vehiclectl trips\" for a list\n")
    #expect(missing.stdout == #"{"error":"io.vehicled.history.NoSuchPeriod","parameters":{"number":99}}"# + "\n")
  }

  @Test func `a plot without a terminal is plain text of 80 columns and 23 rows`() throws {
    let rig = try HistoryRig()
    defer { rig.stop() }
    let outcome = try rig.run("plot", "speed", "--trip", "12")
    let lines = outcome.stdout.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
    #expect(outcome.status == 0 && lines.count == 23 && lines.allSatisfy { String($0).displayWidth <= 80 }, "\(outcome)")
    #expect(!outcome.stdout.contains("\u{1b}") && lines[0] == "trip 12 of ev, Mon 23 Nov 2026 08:12 – 08:54 CET")
    #expect(lines[1].hasPrefix("ev.speed km/h") && lines[1].hasSuffix("max 200"), "the spike")
    let imperial = try rig.run("plot", "speed", "--trip", "12", "--units", "imperial").stdout
    #expect(imperial.contains("ev.speed mph") && imperial.contains("max 124"))
    let json = try #require(JSON(try rig.run("plot", "speed", "--last", "1h", "--points", "10", "--json").stdout))
    guard case .array(let plots)? = json["plots"], case .array(let points)? = plots.first?["points"] else {
      throw Failure.other("no plots")
    }
    #expect(points.count == 9 && plots[0]["unit"] == .string("km/h"))
  }

  @Test func `a plot is written as SVG`() throws {
    let rig = try HistoryRig()
    defer { rig.stop() }
    let outcome = try rig.run("plot", "ev.*", "--svg", "-", "--overlay")
    #expect(outcome.status == 0 && outcome.stdout.hasPrefix("<?xml") && outcome.stdout.hasSuffix("</svg>\n"))
    #expect(try rig.run("plot", "speed", "--svg", "/").status == 2)
  }

  @Test(arguments: [
    (["plot", "sped"], 4, "did you mean speed?"), (["plot", "ev.sped"], 4, "nothing is recorded for ev.sped; did you mean ev.speed?"),
    (["plot", "evv.speed"], 4, "nothing is recorded for device \"evv\"; did you mean ev?"),
    (["plot", "gear"], 2, "cannot plot gear: its values are not numbers"),
    (["plot", "x*"], 4, "no recorded property with numbers matches"),
    (["plot", "speed", "--last", "1h", "--trip", "1"], 2, "more than one range"),
    (["plot", "speed", "--last", "soon"], 2, "is not a duration"),
    (["plot", "speed", "--until", "1970-01-02", "--since", "1970-01-03"], 2, "--since is not before --until"),
    (["plot"], 2, "missing expected argument"),
    (["history", "export", "--csv", "--property", "sped"], 4, "did you mean speed?"),
    (["plot", "speed", "--until", "1970-01-02", "--since", "1970-01-02"], 2, "--since is not before --until"),
    (["history", "export", "--csv", "--json", "--output", "-"], 2, "use --output FILE"),
    (["history", "delete", "evv", "--yes"], 4, "did you mean ev?"), (["history", "delete", "ev"], 2, "use --yes"),
    (["history", "exprot"], 2, "did you mean history export?"), (["trip", "x"], 2, "x"),
  ]) func `mistakes have a remedy`(_ arguments: [String], _ status: Int, _ message: String) throws {
    let rig = try HistoryRig()
    defer { rig.stop() }
    let outcome = try Program.run(arguments, environment: ["VEHICLED_HISTORY_SOCKET": rig.path])
    #expect(outcome.status == status && outcome.stderr.contains(message), "\(outcome)")
    #expect(rig.changes.isEmpty)
  }

  @Test func `a service that does not run is an error that starts it`() throws {
    for arguments in [["trips"], ["plot", "speed"], ["history"], ["history", "export", "--csv"]] {
      let outcome = try Program.run(arguments + ["--history-socket", "/nonexistent/history"])
      #expect(
        outcome.status == 3
          && outcome.stderr == "vehiclectl: vehicled-history is not running: no service is listening on /nonexistent/history; "
            + "install the package vehicled-history, or start it: sudo systemctl enable --now vehicled-history\n",
        "\(outcome)")
    }
    let server = try SocketServer { _, _ in .sendAndClose([]) }
    defer { server.stop() }
    let outcome = try Program.run(["trips", "--history-socket", server.path])
    #expect(
      outcome.status == 3
        && outcome.stderr.contains("vehicled-history closed the connection without a reply; see: journalctl -u vehicled-history"))
  }

  @Test func `errors of the service have messages and exit codes`() throws {
    for (error, code, message) in [
      (
        HistoryContractError.storeError(code: "disk-full", message: "the disk is full; free space"), Int32(1),
        "the disk is full; free space"
      ),
      (.invalidArgument(argument: "start", message: "the range is empty; use a later end"), 2, "the range is empty; use a later end"),
      (.notRecorded(device: "x", known: ["ev", "van"]), 4, "nothing is recorded for device \"x\"; recorded: ev, van"),
      (
        .notRecorded(device: "x", known: []), 4,
        "nothing is recorded for device \"x\"; nothing was recorded yet: run \"vehiclectl history status\""
      ),
      (
        .notRecorded(device: "ev", property: "x", known: ["speed"]), 4,
        "nothing is recorded for ev.x; run \"vehiclectl history series ev\" for a list"
      ),
    ] {
      let server = try SocketServer { _, _ in .send(VarlinkReply.message(error: error)) }
      defer { server.stop() }
      let outcome = try Program.run(["trips", "--history-socket", server.path])
      #expect(outcome.status == code && outcome.stderr == "vehiclectl: \(message)\n", "\(outcome)")
    }
  }

  @Test func `status, series and maintenance`() throws {
    let rig = try HistoryRig()
    defer { rig.stop() }
    let status = try rig.run("history").stdout
    #expect(
      status == """
        recording  no: vehicled is not running
        devices    ev, gps
        values     Mon 23 Nov 2026 08:12 – Mon 23 Nov 2026 08:13
        size       1.2 MB, 0.0 % of 8.0 GB
        dropped    2 blocks, because the limit or the disk was full

        """, "\(status)")
    #expect(try rig.run("history", "series", "gps").stdout.contains("gps.altitude   float  m\n"))
    let check = try rig.run("history", "check")
    #expect(check.status == 1 && check.stdout == "block 7 of ev: checksum mismatch\n9 blocks checked, 1 damaged\n")
    #expect(try rig.run("history", "compact").stdout == "size 1.2 MB\n")
    #expect(try rig.run("history", "recut", "--device", "ev").stdout == "412 trips, charges and parked periods\n")
    #expect(try rig.run("history", "recut", "--json").stdout == "{\"periods\":412}\n")
  }

  @Test func `rename passes both names`() throws {
    let rig = try HistoryRig()
    defer { rig.stop() }
    let outcome = try rig.run("history", "rename", "ev", "golf")
    #expect(outcome.status == 0 && outcome.stderr == "renamed ev to golf\n", "\(outcome)")
    #expect(rig.changes.last?["device"] == .string("ev") && rig.changes.last?["name"] == .string("golf"))
    #expect(try rig.run("history", "rename", "ev", "golf", "--json").stdout == "{}\n")
  }

  @Test func `delete asks first, and passes the range`() throws {
    let rig = try HistoryRig()
    defer { rig.stop() }
    let sure = try rig.run("history", "delete", "ev", "--property", "speed", "--until", "2026-01-01", "--yes")
    #expect(sure.status == 0 && sure.stderr == "deleted the values of ev.speed up to Thu 1 Jan 2026 00:00\n", "\(sure)")
    let call = try #require(rig.changes.last)
    #expect(call["device"] == .string("ev") && call["property"] == .string("speed"))
    #expect(call["start"] == nil && call["end"] == .int(1_767_222_000_000_000))
    let pty = try PTY()
    let pid = try Program.start(["history", "delete", "gps"], on: pty, environment: ["VEHICLED_HISTORY_SOCKET": rig.path])
    var talk = Conversation(pty)
    talk.when("Delete all values, trips, charges and parked periods of gps in the entire history? [y/N]", type: "n\n")
    #expect(talk.end(of: pid) == 1 && talk.shown.contains("nothing deleted: not confirmed"))
    #expect(rig.changes.count == 1)
  }
}
