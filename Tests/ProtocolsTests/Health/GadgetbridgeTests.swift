import Testing

@testable import Protocols

/// Import of a Gadgetbridge export with given database answers. The SQL is tested in vehicledTests.
@Suite struct GadgetbridgeTests {
  /// An export that a test changes.
  private final class Export: @unchecked Sendable {
    var rows: [[Value?]] = []
    var stamp = FileStamp(size: 1, modified: 1)
    var failure: DatabaseAnswer?
    var columns = ["TIMESTAMP", "DEVICE_ID", "STEPS", "HEART_RATE"]

    func answer(_ query: DatabaseQuery) -> DatabaseAnswer {
      if let failure { return failure }
      if query.knownStamp == stamp { return .unchanged }
      guard query.sql == GadgetbridgeTable.tablesQuery else { return .rows(rows, stamp) }
      return .rows(columns.map { [.string("MI_BAND_ACTIVITY_SAMPLE"), .string($0)] }, stamp)
    }

    /// One device with its newest sample and its totals of today.
    func set(_ name: String = "Mi Band 4", newest: Int64, steps: Double?, heart: (Int, Int64)? = nil, distance: Double? = nil) {
      stamp.modified += 1
      let code = heart.map { Value.int(Int($0.1) * 1000 + $0.0) }
      rows = [
        [
          .int(0), .int(7), .string(name), nil, .int(Int(newest)), .int(steps == nil ? 0 : 3), .float(steps ?? 0),
          distance.map(Value.float),
          nil, code,
        ]
      ]
    }
  }

  private static let now = HealthRig.afternoon / 1_000_000

  private static func rig(_ export: Export, _ options: [String: Value] = [:]) throws -> HealthRig {
    var rig = try HealthRig(options.merging(["gadgetbridge": .string("Gadgetbridge")]) { $1 })
    rig.database = export.answer
    rig.start()
    return rig
  }

  @Test func `the totals of the day are published with their age`() throws {
    let export = Export()
    export.set(newest: Self.now - 3 * 3600, steps: 4321, heart: (72, Self.now - 3 * 3600))
    var rig = try Self.rig(export)
    #expect(rig.number("steps") == 4321 && rig.text("steps-source") == "Gadgetbridge: Mi Band 4 at 11:05" && rig.fault == nil)
    #expect(rig.ages["steps"] == 3 * 3600 * .second)
    #expect(rig.absence("heart-rate") == "the newest heart rate of Mi Band 4 is 3 h old: synchronise and export again")
    #expect(rig.absence("distance") == "Mi Band 4 does not record distance: vehiclectl set DEVICE.distance VALUE")
    // Midnight and the latest accepted time.
    #expect(rig.queries.last?.arguments == [.int(1_773_097_200), .int(Int(Self.now) + 300)])
    let (before, shown) = (rig.queries.count, rig.published["steps"])
    rig.run(for: 600 * .second)
    #expect(rig.queries.count - before == 10 && rig.queries.suffix(10).allSatisfy { $0.knownStamp == export.stamp })
    #expect(rig.published["steps"] == shown, "a new age alone is not published")
    export.set(newest: Self.now + 600, steps: 5000, heart: (90, Self.now + 590))
    rig.run(for: 60 * .second)
    #expect(rig.number("steps") == 5000 && rig.number("heart-rate") == 90)
    rig.run(for: 120 * .second)
    #expect(rig.number("heart-rate") == nil && rig.number("steps") == 5000)
  }

  @Test func `the newer of the set and the imported value is used`() throws {
    let export = Export()
    export.set(newest: Self.now - 60, steps: 4321)
    var rig = try Self.rig(export)
    rig.set("steps", 4400)
    #expect(rig.number("steps") == 4400 && rig.text("steps-source") == "set by hand at 14:05")
    export.set(newest: Self.now + 50, steps: 4500)
    rig.run(for: 61 * .second)
    #expect(rig.number("steps") == 4500)
  }

  @Test func `the totals end at midnight, and an unchanged file is read again`() throws {
    let export = Export()
    export.set(newest: Self.now, steps: 4321)
    var rig = try Self.rig(export)
    rig.run(for: 9 * 3600 * .second)
    #expect(rig.number("steps") == 4321)
    export.rows[0][5] = .int(0)
    rig.run(for: 3600 * .second)
    #expect(rig.absence("steps") == "no data for today: the newest sample of Mi Band 4 is 10 h old")
    #expect(rig.queries.contains { $0.arguments.first == .int(1_773_097_200 + 86_400) })
  }

  @Test func `a sample expires even if the clock is set back`() throws {
    let export = Export()
    export.set(newest: Self.now - 30, steps: 1, heart: (72, Self.now - 30))
    var rig = try Self.rig(export)
    #expect(rig.number("heart-rate") == 72 && rig.ages["heart-rate"] == 30 * .second)
    for _ in 0..<6 {
      rig.run(for: 20 * .second)
      rig.wall -= 20_000_000
    }
    rig.run(for: 20 * .second)
    #expect(rig.number("heart-rate") == nil)
  }

  @Test(arguments: [
    (DatabaseAnswer.missing, "no file Gadgetbridge in import/"), (.failed("it is locked"), "it is locked"),
    (.rows([], FileStamp(size: 2, modified: 2)), "not a Gadgetbridge database: no table"),
  ]) func `an import error is a fault, and the last values remain`(_ failure: DatabaseAnswer, _ words: String) throws {
    let export = Export()
    export.set(newest: Self.now, steps: 4321)
    var rig = try Self.rig(export)
    export.failure = failure
    rig.run(for: 61 * .second)
    #expect(rig.fault?.contains(words) == true && rig.number("steps") == 4321)
    let before = rig.queries.count
    rig.set("active-energy", 5)
    #expect(rig.queries.count == before, "setting a value does not read the file")
    export.failure = nil
    rig.run(for: 61 * .second)
    #expect(rig.fault == nil && rig.number("steps") == 4321)
  }

  @Test func `the newest of several devices is used, or the configured one`() throws {
    let export = Export()
    export.set("Mi Band 4", newest: Self.now - 50, steps: 100)
    let old = export.rows[0]
    export.set("Watch", newest: Self.now - 10, steps: 200)
    var row = export.rows[0]
    row[1] = .int(8)
    export.rows = [old, row]
    #expect(try Self.rig(export).text("steps-source") == "Gadgetbridge: Watch at 14:04")
    let named = try Self.rig(export, ["gadgetbridge-device": .string("mi band 4")])
    #expect(named.number("steps") == 100)
    let unknown = try Self.rig(export, ["gadgetbridge-device": .string("Ring")])
    #expect(unknown.fault == "no samples of device \"Ring\" in Gadgetbridge's database: it has Watch, Mi Band 4")
  }

  @Test func `a summary is not added to the samples of the same device`() throws {
    let export = Export()
    export.set(newest: Self.now - 600, steps: 100)
    let answer = export.answer
    var rig = try HealthRig(["gadgetbridge": .string("g")])
    var rows = export.rows
    rows.append(rows[0])
    rows[1][0] = .int(1)
    rows[1][4] = .int(Int(Self.now))
    rows[1][6] = .float(99_999)
    rig.database = { query in
      guard query.sql == GadgetbridgeTable.tablesQuery else { return .rows(rows, FileStamp(size: 1, modified: 1)) }
      let summary = ["TIMESTAMP", "STEPS"].map { [Value.string("XIAOMI_DAILY_SUMMARY_SAMPLE"), .string($0)] as [Value?] }
      if case .rows(let samples, let stamp) = answer(query) { return .rows(samples + summary, stamp) }
      return .missing
    }
    rig.start()
    #expect(rig.number("steps") == 100)
  }

  @Test func `malicious rows do no harm, and implausible values are not published`() throws {
    let export = Export()
    export.set("\u{1B}[31mEvil\u{202E}\n\u{7}", newest: Self.now, steps: 1e300, heart: (999, Self.now))
    var rig = try Self.rig(export)
    #expect(rig.absence("steps") == "implausible value 1e+300 from [31mEvil" && rig.number("heart-rate") == nil)
    for row in [
      [], [nil], [.int(99)] + [Value?](repeating: nil, count: 9), [.int(-1)] + [Value?](repeating: .int(.max), count: 9),
      [.int(0)] + [Value?](repeating: .int(.max), count: 9), [.int(0)] + [Value?](repeating: .int(.min), count: 9),
      [.int(0)] + [Value?](repeating: .float(.nan), count: 9), [.int(0)] + [Value?](repeating: .string("x"), count: 9),
    ] as [[Value?]] {
      export.rows = [row]
      export.stamp.modified += 1
      rig.run(for: 61 * .second)
      #expect(rig.number("steps").map { $0 <= 1_000_000 } != false)
    }
    export.columns = ["timestamp", "Steps", "a\u{0}b", String(repeating: "x", count: 1000)]
    export.stamp.modified += 1
    rig.run(for: 61 * .second)
    #expect(rig.queries.last?.sql.contains("\"timestamp\"") == true)
  }

  @Test func `names from the database are quoted in SQL`() {
    let name = "a\"; DROP TABLE x; --"
    let tables = GadgetbridgeTable.all(in: [[.string(name), .string("TIMESTAMP")], [.string(name), .string("steps")]])
    #expect(tables.count == 1)
    #expect(GadgetbridgeTable.totalsQuery(of: tables)?.contains("FROM \"a\"\"; DROP TABLE x; --\")") == true)
    #expect(GadgetbridgeTable.totalsQuery(of: []) == nil)
    let many = (0..<500).flatMap {
      [[Value.string("t\($0)"), .string("TIMESTAMP")], [.string("t\($0)"), .string("STEPS")]] as [[Value?]]
    }
    #expect(GadgetbridgeTable.all(in: many).count == 64)
  }
}
