// The properties that the history service has recorded, and their selection by references on the command line. No I/O except for
// completion.

import ArgumentParser
import Protocols
import Varlink

struct RecordedProperties {
  let series: [HistoryContract.Series]

  init(_ series: [HistoryContract.Series]) { self.series = series }

  /// The recorded devices, in the order of their series.
  var devices: [String] {
    var seen: Swift.Set<String> = []
    return series.map(\.device).filter { seen.insert($0).inserted }
  }

  /// Schemas of the recorded devices, with the properties that `isIncluded` selects.
  private func schemas(_ isIncluded: (HistoryContract.Series) -> Bool) -> [Contract.Schema] {
    devices.map { device in
      var seen: Swift.Set<String> = []
      let properties = series.filter { $0.device == device && isIncluded($0) && seen.insert($0.property).inserted }.map {
        Property($0.property, ValueType(rawValue: $0.type) ?? .string, unit: $0.unit, help: "")
      }
      return Contract.Schema(device: device, kind: "", Schema(properties: properties, actions: []))
    }
  }

  /// The numeric and boolean properties that references (PROPERTY, DEVICE.PROPERTY, DEVICE or a pattern) select, each once.
  func numbers(_ references: [String]) throws(Failure) -> [(device: String, property: String)] {
    let schemas = schemas { ["bool", "int", "float"].contains($0.type) }
    do throws(Failure) {
      return try References(references, in: schemas).expanded(in: schemas).map { name in
        let parts = name.split(separator: ".", maxSplits: 1)
        return (String(parts[0]), String(parts[1]))
      }
    } catch {
      throw failure(error, schemas)
    }
  }

  /// Returns the recorded properties that the names or patterns select, by device. An empty list selects all. Throws if a name or pattern
  /// selects nothing.
  func selection(devices: [String], properties: [String]) throws(Failure) -> [(device: String, properties: [String])] {
    for device in devices where !self.devices.contains(device) {
      throw .history(.notRecorded(device: device, known: self.devices))
    }
    let chosen = series.filter { devices.isEmpty || devices.contains($0.device) }
    let matches = { (name: String, series: HistoryContract.Series) in
      Glob.isPattern(name) ? Glob(Substring(name)).matches(series.property) : name == series.property
    }
    for name in properties where !chosen.contains(where: { matches(name, $0) }) {
      let best = nearest(to: name, among: chosen.map(\.property))
      throw .noSuchProperty(
        "nothing is recorded for \"\(name)\"; \(best.map { "did you mean \($0)?" } ?? "run \"vehiclectl history series\" for a list")")
    }
    return self.devices.compactMap { device in
      var seen: Swift.Set<String> = []
      let names = chosen.filter { entry in entry.device == device && (properties.isEmpty || properties.contains { matches($0, entry) }) }
        .map(\.property).filter { seen.insert($0).inserted }
      return names.isEmpty ? nil : (device, names)
    }
  }

  /// Whether the positions of a device are recorded.
  func hasPosition(_ device: String) -> Bool {
    [GPXExport.latitude, GPXExport.longitude].allSatisfy { name in series.contains { $0.device == device && $0.property == name } }
  }

  /// Translates a failure about the daemon's properties into one about recorded properties.
  private func failure(_ failure: Failure, _ schemas: [Contract.Schema]) -> Failure {
    switch failure {
    case .rejected(.noSuchDevice(let device)): return .history(.notRecorded(device: device, known: devices))
    case .rejected(.noSuchProperty(let device?, let property)):
      if series.contains(where: { $0.device == device && $0.property == property }) {
        return .usage("cannot plot \(device).\(property): its values are not numbers; export them: vehiclectl history export")
      }
      let known = schemas.first { $0.device == device }?.properties.map(\.name) ?? []
      return .history(.notRecorded(device: device, property: property, known: known))
    case .rejected(.noSuchProperty(nil, let property)):
      if series.contains(where: { $0.property == property }) {
        return .usage("cannot plot \(property): its values are not numbers; export them: vehiclectl history export")
      }
      let best = nearest(to: property, among: devices + schemas.flatMap(\.properties).map(\.name))
      return .noSuchProperty(
        "nothing is recorded for \"\(property)\"; \(best.map { "did you mean \($0)?" } ?? "run \"vehiclectl history series\" for a list")")
    case .noSuchProperty:
      return .noSuchProperty("no recorded property with numbers matches; run \"vehiclectl history series\" for a list")
    default: return failure
    }
  }
}

extension CompletionKind {
  /// Completes the names of recorded devices.
  static var recordedDevices: CompletionKind { recorded { $0.devices } }
  /// Completes the names of recorded numbers and booleans with the device, and without it if they are unambiguous.
  static var recordedNumbers: CompletionKind {
    recorded { recorded in
      let names = recorded.series.filter { ["bool", "int", "float"].contains($0.type) }
      let counts = Dictionary(names.map { ($0.property, 1) }, uniquingKeysWith: +)
      return names.flatMap { counts[$0.property] == 1 ? [$0.property, "\($0.device).\($0.property)"] : ["\($0.device).\($0.property)"] }
    }
  }

  /// Completes from the recorded series. The timeout is 200 ms because the user is waiting.
  private static func recorded(_ names: @escaping @Sendable (RecordedProperties) -> [String]) -> CompletionKind {
    .custom { words, _, _ in
      let service = Service.history
      let given = words.firstIndex(of: service.socketOption).flatMap { $0 + 1 < words.count ? words[$0 + 1] : nil }
      let path = given ?? Environment[service.socketVariable] ?? service.defaultSocket
      let series = try? Client(path: path, timeout: 0.2, service: .history).call(HistoryContract.SeriesMethod.self, .init()).series
      return names(RecordedProperties(series ?? []))
    }
  }
}
