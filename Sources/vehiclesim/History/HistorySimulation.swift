// `vehiclesim history`: years of driving in virtual time, imported into a running vehicled-history or written to a file.

import ArgumentParser
import Glibc
import Peers
import Protocols
import SampleBlocks
import Varlink

struct HistorySimulation: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "history",
    abstract: "Generate years of recorded driving, for tests of the history.",
    usage: "vehiclesim history [<options>]",
    discussion: """
      In virtual time, the daemon's implementation of kind obd polls the simulated adapter in an electric car, which follows a plan of \
      about 400 h of driving a year: commutes, errands, long journeys, charges at home and at fast chargers, and days without a trip. \
      Everything is determined by --seed. With --case, the plan is instead one awkward drive or charge of the golden set, and its expected \
      trips and charges are printed, in minutes since the start. The values are imported into the vehicled-history that serves --socket, or written to a file \
      for "vehiclectl history import". At the end, the command prints the number of polled values, whether they changed or not.

      Examples:
        vehiclesim history --days 7 --output week.blocks
        vehiclesim history --years 2 --start 2024-01-01 --device test-car
      """)

  @Option(help: ArgumentHelp("Generate this many years.", valueName: "n"))
  var years: Int?

  @Option(help: ArgumentHelp("Generate this many days (default: 7, unless --years is given).", valueName: "n"))
  var days: Int?

  @Option(name: .customLong("case"), help: ArgumentHelp("Generate this case of the golden set.", valueName: "name"))
  var drivingCase: DrivingCase?

  @Option(help: ArgumentHelp("Set the seed of the plan and of the noise of the measured values.", valueName: "n"))
  var seed: UInt64 = 1

  @Option(help: ArgumentHelp("Set the name of the device.", valueName: "name"))
  var device = "simulated-car"

  @Option(help: ArgumentHelp("Set the first day, in UTC (default: so that the last day was yesterday).", valueName: "date"))
  var start: PlanDate?

  @Option(help: ArgumentHelp("Set the polls per second of the battery data record, 0.1 to 50.", valueName: "hz"))
  var rate = 20.0

  @Option(
    help: ArgumentHelp("Import into the vehicled-history at this socket (default: \(HistoryContract.defaultSocket)).", valueName: "path"))
  var socket: String?

  @Option(help: ArgumentHelp("Write to this file instead, which must not exist.", valueName: "file"))
  var output: String?

  @Flag(name: .shortAndLong, help: "Do not print the progress.")
  var quiet = false

  private static let day: Nanoseconds = 86_400 * .second
  /// The virtual time between two writes.
  private static let step: Nanoseconds = 600 * .second

  func validate() throws {
    if years != nil && days != nil { throw ValidationError("--years and --days are mutually exclusive") }
    if drivingCase != nil && (years != nil || days != nil) { throw ValidationError("--case excludes --years and --days") }
    if let years, !(1...20).contains(years) { throw ValidationError("--years \(years) is out of range: choose 1 to 20") }
    if let days, !(1...7305).contains(days) { throw ValidationError("--days \(days) is out of range: choose 1 to 7305") }
    if !(0.1...50).contains(rate) { throw ValidationError("--rate \(rate) is out of range: choose 0.1 to 50") }
    if socket != nil && output != nil { throw ValidationError("--socket and --output are mutually exclusive") }
  }

  func run() throws {
    let days = drivingCase.map { Int($0.plan.length / Self.day) + 1 } ?? years.map { Int((Double($0) * 365.25).rounded()) } ?? days ?? 7
    let first = start ?? PlanDate(day: Int(time(nil)) / 86_400 - days)
    let plan = drivingCase?.plan ?? DrivingPlan(days: days, seed: seed, firstWeekday: first.weekday)
    let car = PlannedCar(plan, seed: seed, firstDay: first.dayOfYear)
    var recording = try PlannedRecording(car, rate: rate, seed: seed, outages: drivingCase?.outages ?? [])
    // The same values have the same source, so that an interrupted run can be repeated.
    let name = drivingCase.map { "case \($0.name) " } ?? ""
    let source = "vehiclesim history \(name)\(first) seed \(seed) rate \(Value.float(rate).text)"
    var writer = try BlockWriter(
      device: device, to: output.map { .file($0) } ?? .socket(socket ?? HistoryContract.defaultSocket, source: source))
    let origin = Int64(first.day) * 86_400_000_000
    let end = plan.length
    var reported = time(nil)
    while recording.now < end {
      for sample in recording.run(until: min(end, recording.now + Self.step)) {
        if let failure = sample.powerFailure { try writer.interrupt(at: origin + failure / 1000) }
        try writer.append(sample.content, sample.series, of: recording.series, at: origin + sample.time / 1000)
      }
      if time(nil) > reported + 1 {
        reported = time(nil)
        report("day \(recording.now / Self.day + 1) of \(days): \(recording.samples) samples")
      }
    }
    try writer.finish(at: origin + end / 1000)
    let (trips, charges) = (plan.activities.count(where: \.isTrip), plan.activities.count { !$0.isTrip })
    Console.write(
      JSON.members([
        "days": .int(days), "trips": .int(trips), "charges": .int(charges), "polls": .int(recording.polls),
        "samples": .int(recording.samples), "stored": .int(writer.sampleCount), "kilometres": .int(Int(recording.distance)),
        "expected": drivingCase.map { .array($0.expected.map { .string($0) }) },
      ]).text)
  }

  private func report(_ text: String) {
    if !quiet { Console.writeError(text) }
  }
}

extension DrivingCase: ExpressibleByArgument {
  public init?(argument: String) {
    guard let found = Self.all.first(where: { $0.name == argument }) else { return nil }
    self = found
  }

  public static var allValueStrings: [String] { all.map(\.name) }
}
