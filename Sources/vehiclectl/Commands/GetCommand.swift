// get: prints values for scripts, one per line, without names or units. For an unavailable value, it prints the reason on stderr, and exits
// with 5 if the device is not connected, or else with 1.

import ArgumentParser
import Protocols
import Varlink

struct GetCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "get", abstract: "Print values, one per line.",
    discussion: """
      A device selects all its properties, even if a property has the same name, and a pattern such as 'ev.cell*' every property that \
      it matches.
      If you request one value and it is unavailable, the command prints nothing on stdout. If you request several values, it prints \
      \"-\" for each unavailable one. \
      The reason is on stderr. The exit status is 5 if a device is not connected, 4 if a property does not exist, and 1 otherwise. \
      If a device or a pattern selects several properties, the exit status is 0 if at least one of them has a value. \
      With --json, the value is null, and "reason" gives the reason.
      """)

  @OptionGroup var common: CommonOptions
  @Flag(help: "Print the name and the unit of each value.")
  var long = false
  @Argument(help: ArgumentHelp("PROPERTY, DEVICE.PROPERTY, DEVICE, or a pattern.", valueName: "ref"), completion: .properties)
  var references: [String]

  /// A line of the output: a reading, or an argument that names no property.
  private enum Entry {
    case reading(Contract.Reading)
    case unknown(String, Failure)

    var reading: Contract.Reading? { if case .reading(let reading) = self { reading } else { nil } }
    var failure: Failure? { if case .unknown(_, let failure) = self { failure } else { nil } }
    var hasValue: Bool { reading?.value != nil }
  }

  func perform(_ output: Output) throws {
    let units = try common.unitSystem()
    let client = try common.connect(output)
    let (entries, areExact) = try read(client)
    let lines = entries.map { entry in
      if case .reading(let reading) = entry { Entry.reading(units.converted(reading)) } else { entry }
    }
    if output.json {
      output.json(["readings": .array(lines.compactMap(\.reading).map { JSON($0) })])
    } else if long {
      var table = Table("", ">", "")
      table.rows = lines.map(Self.row)
      output.lines(table.lines(width: Output.width, paint: output.paint))
    } else {
      output.lines(lines.filter { $0.hasValue || lines.count > 1 }.map(Self.text))
    }
    // A vehicle need not have every property that a pattern selects.
    let missing = areExact ? lines[...] : lines.contains(where: \.hasValue) ? [] : lines.prefix(1)
    let unavailable = missing.compactMap(\.reading).filter { $0.value == nil }
    let failures = lines.compactMap(\.failure) + (try unavailable.map { try failure($0, client) })
    guard !failures.isEmpty else { return }
    for failure in failures { output.printError(failure) }
    throw ExitCode(failures.map(\.exitCode).max() ?? 1)
  }

  /// The readings in the order of the arguments, and whether every argument names one property. Requests the schemas only if necessary,
  /// because scripts read the same properties again and again.
  private func read(_ client: Client) throws(Failure) -> ([Entry], areExact: Bool) {
    if try arePropertyNames(client) {
      do throws(Failure) {
        return (try client.call(Contract.Get.self, .init(references: references)).readings.map(Entry.reading), true)
      } catch {
        guard error.exitCode == 4 else { throw error }  // a reference is unknown
      }
    }
    let schemas = try client.call(Contract.Describe.self, .init(device: nil)).schemas
    var areExact = true
    let groups = try references.map { argument throws(Failure) -> [Entry] in
      do throws(Failure) {
        let selected = try References([argument], in: schemas)
        areExact = areExact && selected.areExact
        let names = selected.expanded(in: schemas)
        return names.isEmpty ? [] : try client.call(Contract.Get.self, .init(references: names)).readings.map(Entry.reading)
      } catch {
        // One unknown name must not hide the other values.
        guard references.count > 1, !common.json, error.exitCode == 4 else { throw error }
        return [.unknown(argument, error.suggesting(from: schemas, words: VehicleCtl.words))]
      }
    }
    return (groups.flatMap(\.self), areExact)
  }

  /// Whether no reference is a pattern or names a device. The daemon itself resolves a name without a dot only to a property.
  private func arePropertyNames(_ client: Client) throws(Failure) -> Bool {
    for reference in references {
      if Glob.isPattern(reference) { return false }
      guard !reference.contains(".") else { continue }
      do throws(Failure) {
        if try client.call(Contract.Status.self, .init(device: reference)).devices.contains(where: { $0.name == reference }) {
          return false
        }
      } catch {
        guard error.exitCode == 4 else { throw error }
      }
    }
    return true
  }

  private static func text(_ entry: Entry) -> String {
    entry.reading?.value.map { Output.oneLine(Format.text($0)) } ?? "-"
  }

  /// The maximum width of the column of values.
  private static let maxColumnWidth = 20

  private static func row(_ entry: Entry) -> [Cell] {
    switch entry {
    case .unknown(let name, _): [Cell(name), Cell("-", .dim)]
    case .reading(let reading) where reading.value == nil: [Cell(reading.reference), Cell("-", .dim)]
    case .reading(let reading):
      // A long text would move the units of the other values to the right.
      text(entry).displayWidth > maxColumnWidth
        ? [Cell(reading.reference), "", Cell(reading.unit.map { "\(text(entry)) \($0)" } ?? text(entry))]
        : [Cell(reading.reference), Cell(text(entry)), Cell(reading.unit ?? "")]
    }
  }

  private func failure(_ reading: Contract.Reading, _ client: Client) throws(Failure) -> Failure {
    let links = try client.call(Contract.Status.self, .init(device: reading.device)).devices.flatMap(\.links)
    return .noValue(
      "\(reading.reference) has no value: \(reading.reason ?? "none received yet"); see: vehiclectl status \(reading.device)",
      notConnected: links.contains { $0.name == "main" && $0.state != "up" })
  }
}
