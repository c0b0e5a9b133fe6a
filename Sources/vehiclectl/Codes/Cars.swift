// The cars that a diagnostic command queries: the named one, or each that has the action. Without a name, a sleeping car is not queried,
// and the failure of one car does not hide the others.

import ArgumentParser
import Protocols
import Varlink

struct Cars {
  struct Car {
    let schema: Contract.Schema
    let state: String
    var device: String { schema.device }
  }

  let all: [Car]
  /// The command without options, such as `dtc clear`.
  private let command: String

  /// Selects the devices that have the action, or only the one with this name. Throws if there is none. `command` is the command that the
  /// user runs, for messages; by default, it has the name of the action.
  init(_ name: String?, doing action: String, for command: String? = nil, _ client: Client) throws(Failure) {
    self.command = command ?? action
    let schemas = try client.call(Contract.Describe.self, .init(device: name)).schemas
    let capable = schemas.filter { schema in (name ?? schema.device) == schema.device && schema.actions.contains { $0.name == action } }
    guard !capable.isEmpty else { throw Self.notFound(name, self.command, schemas) }
    let devices = try client.call(Contract.Status.self, .init(device: name)).devices
    all = capable.map { schema in Car(schema: schema, state: devices.first { $0.name == schema.device }?.state ?? "") }
  }

  private static func notFound(_ name: String?, _ command: String, _ schemas: [Contract.Schema]) -> Failure {
    if let name {
      let kind = schemas.first { $0.device == name }?.kind ?? "unknown"
      return .noSuchDevice("\(name) does not support \"\(command)\": its kind is \(kind); list devices: vehiclectl status")
    }
    return .noSuchDevice(
      schemas.isEmpty
        ? "no devices are configured; add a car: vehiclectl setup"
        : "no device supports \"\(command)\"; add a car: vehiclectl setup")
  }

  /// Returns the only car. Throws if there are several.
  func only() throws(Failure) -> Car {
    guard all.count == 1 else {
      throw .usage("more than one device supports \"\(command)\": \(all.map(\.device).joined(separator: ", ")); add the device name")
    }
    return all[0]
  }

  /// Shows the report of each car, under its name if there are several. Throws the highest exit code.
  func forEach(_ output: Output, _ show: (Car) throws -> Void) throws {
    if all.count == 1 {
      if let note = SleepingVehicle.waking(all[0].device, all[0].state) { output.note(note) }
      return try show(all[0])
    }
    let statuses = try all.enumerated().map { position, car in
      if !output.json { output.lines((position > 0 ? [""] : []) + [output.paint(car.device, .bold)]) }
      return try status(of: car, output, show)
    }
    if let status = statuses.max(), status > 0 { throw ExitCode(status) }
  }

  private func status(of car: Car, _ output: Output, _ show: (Car) throws -> Void) throws -> Int32 {
    guard !SleepingVehicle.isAsleep(car.state) else {
      let note = "not queried: not in use (\(car.state)), and a query may wake it; to query it: vehiclectl \(command) \(car.device)"
      if output.json { output.json(["device": .string(car.device), "note": .string(note)]) } else { output.note(note) }
      return 0
    }
    do { try show(car) } catch let failure as Failure {
      output.fail(failure)
      return failure.exitCode
    }
    return 0
  }
}
