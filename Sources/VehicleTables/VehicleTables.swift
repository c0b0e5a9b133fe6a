// Runs generate.py, which generates Swift tables from the files in the folders Vehicles of Sources/Protocols. Needs only Python 3.11 or
// later.

import Foundation
import PackagePlugin

@main struct VehicleTables: BuildToolPlugin {
  func createBuildCommands(context: PluginContext, target: Target) throws -> [Command] {
    let package = context.package.directoryURL
    let script = package.appending(path: "Sources/VehicleTables/generate.py")
    let files = try ["OBD", "CANBus"].flatMap { kind in
      let folder = package.appending(path: "Sources/Protocols/\(kind)/Vehicles")
      return try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil).sorted { $0.path < $1.path }
    }
    let output = context.pluginWorkDirectoryURL
    return [
      .buildCommand(
        displayName: "Generating the vehicle tables", executable: URL(filePath: "/usr/bin/env"),
        arguments: ["python3", script.path, output.path] + files.map(\.path), inputFiles: [script] + files,
        outputFiles: files.map { output.appending(path: "\($0.deletingPathExtension().lastPathComponent).swift") })
    ]
  }
}
