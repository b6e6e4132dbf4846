// Reads one file and prints what a test wants to know of it, as JSON.
//
//   node inspect.mjs dockerfile PATH   {problems, stages: [{name, from, args, runs, instructions}], globals}
//   node inspect.mjs bake PATH         the HCL file as JSON
//   node inspect.mjs manifest          standard input: a JSON list of Kubernetes objects -> list of schema errors
//
// Runs as a copy beside node_modules (build/npm), where node looks for the libraries.
import fs from 'node:fs';

function stage(first) {
  return { name: first.getBuildStage(), from: first.getImage(), args: {}, runs: [], instructions: [] };
}

async function dockerfile(path) {
  const { DockerfileParser } = (await import('dockerfile-ast')).default;
  const { validate } = (await import('dockerfile-utils')).default;
  const text = fs.readFileSync(path, 'utf8');
  const out = { problems: validate(text).map((p) => `${p.range.start.line + 1}: ${p.message}`), stages: [], globals: {} };
  let current = null;
  for (const i of DockerfileParser.parse(text).getInstructions()) {
    const word = i.getKeyword();
    if (word === 'FROM') {
      current = stage(i);
      out.stages.push(current);
      continue;
    }
    if (word === 'ARG') {
      const p = i.getProperty();
      (current ? current.args : out.globals)[p.getName()] = p.getValue();
    }
    if (!current) continue;
    if (word === 'RUN') current.runs.push(i.getArgumentsContent());
    const flags = i.getFlags ? i.getFlags().map((f) => f.toString()) : [];
    current.instructions.push([word, [...flags, i.getArgumentsContent()].join(' ')]);
  }
  return out;
}

async function manifests() {
  const core = await import('kubernetes-models/v1');
  const apps = await import('kubernetes-models/apps/v1');
  const batch = await import('kubernetes-models/batch/v1');
  const kinds = {
    'v1/Secret': core.Secret,
    'v1/PersistentVolumeClaim': core.PersistentVolumeClaim,
    'v1/Pod': core.Pod,
    'apps/v1/Deployment': apps.Deployment,
    'batch/v1/Job': batch.Job,
  };
  return JSON.parse(fs.readFileSync(0, 'utf8')).map((object) => {
    const Model = kinds[`${object.apiVersion}/${object.kind}`];
    if (!Model) return `${object.apiVersion}/${object.kind}: no schema for this kind`;
    try {
      new Model(object).validate();
      return null;
    } catch (e) {
      return `${object.kind}: ${e.message}`;
    }
  });
}

async function main() {
  const [, , what, path] = process.argv;
  if (what === 'dockerfile') return dockerfile(path);
  if (what === 'manifest') return manifests();
  if (what === 'bake') return (await import('@cdktf/hcl2json')).default.parse(path, fs.readFileSync(path, 'utf8'));
  throw new Error(`unknown request: ${what}`);
}

main().then(
  (v) => process.stdout.write(JSON.stringify(v)),
  (e) => {
    process.stderr.write(`${e.stack}\n`);
    process.exit(1);
  },
);
